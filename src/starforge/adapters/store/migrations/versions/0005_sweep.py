"""What the sweep needs: who this installation is, which runs were strays last time, and done commands in order."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
DONE = sa.text("done_at IS NOT NULL")


def upgrade() -> None:
    op.create_table(
        "installation",
        sa.Column("number", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("id", WORDS, nullable=False),
        sa.PrimaryKeyConstraint("number"),
    )
    op.create_table(
        "stray",
        sa.Column("fleet", WORDS, nullable=False),
        sa.Column("job_id", WORDS, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("since", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("fleet", "job_id", "attempt"),
    )
    op.create_index("command_done", "command", ["done_at"], sqlite_where=DONE, postgresql_where=DONE)


def downgrade() -> None:
    op.drop_index("command_done", "command")
    op.drop_table("stray")
    op.drop_table("installation")
