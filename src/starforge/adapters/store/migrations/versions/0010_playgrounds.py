"""Playgrounds; and what belongs to a run may belong to one, so that it refers to the table of jobs no more."""

import re
from collections.abc import Callable

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0010"
down_revision = "0008"
branch_labels = None
depends_on = None

# As columns.py has them, but frozen here: a migration stays what it was.
WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
DOCUMENT = sa.JSON(none_as_null=True).with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
DUE = sa.text("due_at IS NOT NULL")
OF_A_RUN = ("pod", "timeline", "log_source", "log_chunk", "log_part", "log_move", "command", "idempotency")
REFERS = "FOREIGN KEY(job_id) REFERENCES job (id) ON DELETE CASCADE"
INDEXES = {
    "playground_by_created": ["created_at", "id"],
    "playground_by_project": ["project", "created_at", "id"],
    "playground_by_fleet": ["fleet", "created_at", "id"],
    "playground_by_state": ["state", "created_at", "id"],
    "playground_by_active": ["active", "created_at", "id"],
    "playground_by_creator": ["created_by", "created_at", "id"],
    "playground_by_job": ["from_job", "created_at", "id"],
}


def upgrade() -> None:
    op.create_table(
        "playground",
        sa.Column("id", WORDS, nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("project", WORDS, nullable=False),
        sa.Column("fleet", WORDS, nullable=True),
        sa.Column("state", WORDS, nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created_by", WORDS, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("from_job", WORDS, nullable=True),
        sa.Column("due_at", MOMENT, nullable=True),
        sa.Column("document", DOCUMENT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    for name, columns in INDEXES.items():
        op.create_index(name, "playground", columns)
    op.create_index("playground_due", "playground", ["due_at", "id"], sqlite_where=DUE, postgresql_where=DUE)
    for table in OF_A_RUN:
        if op.get_context().dialect.name == "sqlite":
            _rebuild(table, lambda sql: re.sub(rf",\s*{re.escape(REFERS)}", "", sql))
        else:
            op.drop_constraint(f"{table}_job_id_fkey", table, type_="foreignkey")


def downgrade() -> None:
    if op.get_bind().execute(sa.text("SELECT 1 FROM playground LIMIT 1")).first():
        raise RuntimeError("There are playgrounds, which the version before does not know.")
    for table in OF_A_RUN:
        if op.get_context().dialect.name == "sqlite":
            _rebuild(table, lambda sql: f"{sql.rstrip().removesuffix(')')}, {REFERS})")
        else:
            op.create_foreign_key(f"{table}_job_id_fkey", table, "job", ["job_id"], ["id"], ondelete="CASCADE")
    op.drop_table("playground")


def _rebuild(table: str, edit: Callable[[str], str]) -> None:
    """SQLite can't change a constraint: the table is made anew, with its rows and its indexes."""
    bind = op.get_bind()
    made = "SELECT type, sql FROM sqlite_master WHERE tbl_name = :table AND sql IS NOT NULL"
    rows = bind.execute(sa.text(made), {"table": table}).all()
    old = next(row.sql for row in rows if row.type == "table")
    new = re.sub(rf'^CREATE TABLE "?{table}"?', f'CREATE TABLE "{table}_new"', edit(old))
    bind.exec_driver_sql(new)
    bind.exec_driver_sql(f'INSERT INTO "{table}_new" SELECT * FROM "{table}"')  # noqa: S608  names of ours
    bind.exec_driver_sql(f'DROP TABLE "{table}"')
    bind.exec_driver_sql(f'ALTER TABLE "{table}_new" RENAME TO "{table}"')
    for row in rows:
        if row.type == "index":
            bind.exec_driver_sql(row.sql)
