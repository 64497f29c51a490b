"""Indexes for a metric in the order of its reports and for old idempotency keys; none that no page needs any more."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

COLUMNS = {"job_by_started_last": "started_at", "job_by_ended_last": "ended_at"}


def upgrade() -> None:
    op.create_index("metric_point_by_series", "metric_point", ["series", "id"])
    op.create_index("idempotency_by_created", "idempotency", ["created_at"])
    if _postgres():
        for name in COLUMNS:
            op.drop_index(name, "job")


def downgrade() -> None:
    op.drop_index("idempotency_by_created", "idempotency")
    op.drop_index("metric_point_by_series", "metric_point")
    if _postgres():
        for name, column in COLUMNS.items():
            op.create_index(name, "job", [sa.text(f"{column} DESC NULLS LAST"), sa.text("id DESC")])


def _postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"
