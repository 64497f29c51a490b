"""Tokens of the people and programs that may ask."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# As columns.py has them, but frozen here: a migration stays what it was.
WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
DOCUMENT = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    op.create_table(
        "token",
        sa.Column("id", WORDS, nullable=False),
        sa.Column("secret_sha256", WORDS, nullable=False),
        sa.Column("name", WORDS, nullable=False),
        sa.Column("role", WORDS, nullable=False),
        sa.Column("projects", DOCUMENT, nullable=True),
        sa.Column("project", WORDS, nullable=True),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("expires_at", MOMENT, nullable=True),
        sa.Column("revoked_at", MOMENT, nullable=True),
        sa.Column("last_used_at", MOMENT, nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )


def downgrade() -> None:
    op.drop_table("token")
