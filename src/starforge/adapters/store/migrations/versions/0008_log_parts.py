"""Lines of archived logs in objects, and which logs still have rows: all that were archived until now."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# As columns.py has them, but frozen here: a migration stays what it was.
WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
ARCHIVED = {
    "sqlite": ("json_extract(document, '$.object_key')", "0"),
    "postgresql": ("document ->> 'object_key'", "to_timestamp(0)"),
}


def upgrade() -> None:
    op.create_table(
        "log_part",
        *_of_a_source(),
        sa.Column("first", sa.BigInteger(), nullable=False, autoincrement=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("blocks", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("job_id", "attempt", "source", "first"),
    )
    op.create_table(
        "log_move",
        *_of_a_source(),
        sa.Column("due_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("job_id", "attempt", "source"),
    )
    op.create_index("log_move_due", "log_move", ["due_at"])
    key, epoch = ARCHIVED[op.get_context().dialect.name]
    op.execute(
        f"INSERT INTO log_move (job_id, attempt, source, due_at) "  # noqa: S608  both are constants of ours
        f"SELECT job_id, attempt, key, {epoch} FROM log_source WHERE lines > 0 AND {key} IS NOT NULL"
    )


def _of_a_source() -> list[sa.Column[str] | sa.Column[int]]:
    return [
        sa.Column("job_id", WORDS, sa.ForeignKey("job.id", ondelete="CASCADE"), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("source", WORDS, nullable=False),
    ]


def downgrade() -> None:
    if op.get_bind().execute(sa.text("SELECT 1 FROM log_part LIMIT 1")).first():
        raise RuntimeError("Lines of logs were moved to the object store, where the version before can't read them.")
    op.drop_table("log_move")
    op.drop_table("log_part")
