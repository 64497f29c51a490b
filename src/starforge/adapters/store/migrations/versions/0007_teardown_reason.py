"""What holds the removal of a job's cluster, as a column to find it by."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

# As columns.py has them, but frozen here: a migration stays what it was.
WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
HELD = sa.text("teardown_reason IS NOT NULL")
INDEX, COLUMN = "job_by_teardown_reason", "teardown_reason"
CODE = {
    "sqlite": "json_extract(attempt.document, '$.teardown.reason.code')",
    "postgresql": "attempt.document -> 'teardown' -> 'reason' ->> 'code'",
}


def upgrade() -> None:
    op.add_column("job", sa.Column(COLUMN, WORDS, nullable=True))
    code = CODE[op.get_bind().dialect.name]
    op.execute(
        f"UPDATE job SET {COLUMN} = (SELECT {code} FROM attempt"  # noqa: S608  nothing of it comes from outside
        " WHERE attempt.job_id = job.id AND attempt.number = job.attempt) WHERE active AND outcome IS NOT NULL"
    )
    op.create_index(INDEX, "job", [COLUMN, "created_at", "id"], sqlite_where=HELD, postgresql_where=HELD)


def downgrade() -> None:
    op.drop_index(INDEX, "job")
    op.drop_column("job", COLUMN)
