"""The nodes of each fleet as last seen."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

# As columns.py has them, but frozen here: a migration stays what it was.
WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
DOCUMENT = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "node",
        sa.Column("fleet", WORDS, nullable=False),
        sa.Column("name", WORDS, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", MOMENT, nullable=False),
        sa.Column("document", DOCUMENT, nullable=True),
        sa.PrimaryKeyConstraint("fleet", "name"),
    )
    op.create_index("node_by_position", "node", ["fleet", "position"])
    op.create_table(
        "capacity",
        sa.Column("fleet", WORDS, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("seen_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("fleet"),
    )


def downgrade() -> None:
    op.drop_table("capacity")
    op.drop_table("node")
