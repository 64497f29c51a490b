"""What was last found about the health of everything, and what observers hear."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# As columns.py has them, but frozen here: a migration stays what it was.
WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
DOCUMENT = sa.JSON().with_variant(JSONB(), "postgresql")
PARKED = sa.text("parked_at IS NOT NULL")
HEARD = (("heard_at", MOMENT), ("lag_s", sa.Float()), ("problem", sa.Text()))


def upgrade() -> None:
    op.create_table(
        "health",
        sa.Column("subject", WORDS, nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("document", DOCUMENT, nullable=False),
        sa.PrimaryKeyConstraint("subject"),
    )
    for name, kind in HEARD:
        op.add_column("observer", sa.Column(name, kind, nullable=True))
    op.create_index("command_parked", "command", ["parked_at", "id"], sqlite_where=PARKED, postgresql_where=PARKED)


def downgrade() -> None:
    op.drop_index("command_parked", "command")
    for name, _ in HEARD:
        op.drop_column("observer", name)
    op.drop_table("health")
