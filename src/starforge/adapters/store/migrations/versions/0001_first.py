"""The first tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# As columns.py has them, but frozen here: a migration stays what it was.
WORDS = sa.String().with_variant(sa.String(collation="C"), "postgresql")
MOMENT = sa.BigInteger().with_variant(sa.TIMESTAMP(timezone=True), "postgresql")
DOCUMENT = sa.JSON().with_variant(JSONB(), "postgresql")
SERIAL = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
DUE = sa.text("due_at IS NOT NULL")
OPEN = sa.text("done_at IS NULL AND parked_at IS NULL")
LEASED = sa.text("leased_until IS NOT NULL")

TABLES = (
    "job",
    "attempt",
    "pod",
    "job_series",
    "job_label",
    "command",
    "observer",
    "feed_head",
    "feed",
    "timeline",
    "log_source",
    "log_chunk",
    "metric_series",
    "metric_point",
    "code",
    "upload",
    "capsule",
    "inline_code",
    "idempotency",
)


def upgrade() -> None:
    _jobs()
    _work()
    _feed()
    _output()
    _code()


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)


def _jobs() -> None:
    op.create_table(
        "job",
        sa.Column("id", WORDS, nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("name", WORDS, nullable=False),
        sa.Column("project", WORDS, nullable=False),
        sa.Column("fleet", WORDS, nullable=True),
        sa.Column("state", WORDS, nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("outcome", WORDS, nullable=True),
        sa.Column("reason", WORDS, nullable=True),
        sa.Column("created_by", WORDS, nullable=False),
        sa.Column("created_by_kind", WORDS, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("updated_at", MOMENT, nullable=False),
        sa.Column("started_at", MOMENT, nullable=True),
        sa.Column("ended_at", MOMENT, nullable=True),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("gpus", sa.Integer(), nullable=False),
        sa.Column("due_at", MOMENT, nullable=True),
        sa.Column("code", WORDS, nullable=True),
        sa.Column("capsule", WORDS, nullable=True),
        sa.Column("idempotency_key", WORDS, nullable=True),
        sa.Column("spec", DOCUMENT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("job_by_active", "job", ["active", "created_at", "id"])
    op.create_index("job_by_code", "job", ["code", "created_at", "id"])
    op.create_index("job_by_created", "job", ["created_at", "id"])
    op.create_index("job_by_creator", "job", ["created_by", "created_at", "id"])
    op.create_index("job_by_ended", "job", ["ended_at", "id"])
    op.create_index("job_by_fleet", "job", ["fleet", "created_at", "id"])
    op.create_index("job_by_gpus", "job", ["gpus", "id"])
    op.create_index("job_by_key", "job", ["idempotency_key"])
    op.create_index("job_by_name", "job", ["name", "id"])
    op.create_index("job_by_outcome", "job", ["outcome", "created_at", "id"])
    op.create_index("job_by_priority", "job", ["priority", "id"])
    op.create_index("job_by_project", "job", ["project", "created_at", "id"])
    op.create_index("job_by_reason", "job", ["reason", "created_at", "id"])
    op.create_index("job_by_started", "job", ["started_at", "id"])
    op.create_index("job_by_state", "job", ["state", "created_at", "id"])
    op.create_index("job_by_updated", "job", ["updated_at", "id"])
    op.create_index("job_due", "job", ["due_at", "id"], sqlite_where=DUE, postgresql_where=DUE)
    op.create_table(
        "attempt",
        sa.Column("job_id", WORDS, nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("document", DOCUMENT, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "number"),
    )
    op.create_table(
        "pod",
        sa.Column("job_id", WORDS, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("uid", WORDS, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("name", WORDS, nullable=False),
        sa.Column("document", DOCUMENT, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "attempt", "uid"),
    )
    op.create_table(
        "job_series",
        sa.Column("job_id", WORDS, nullable=False),
        sa.Column("series", WORDS, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "series"),
    )
    op.create_index("job_series_by_series", "job_series", ["series", "job_id"])
    op.create_table(
        "job_label",
        sa.Column("job_id", WORDS, nullable=False),
        sa.Column("key", WORDS, nullable=False),
        sa.Column("value", WORDS, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "key"),
    )
    op.create_index("job_label_by_key", "job_label", ["key", "value", "job_id"])
    if op.get_context().dialect.name == "postgresql":
        # Newest first with nulls last is not what Postgres' own order of the indexes above gives.
        op.create_index("job_by_started_last", "job", [sa.text("started_at DESC NULLS LAST"), sa.text("id DESC")])
        op.create_index("job_by_ended_last", "job", [sa.text("ended_at DESC NULLS LAST"), sa.text("id DESC")])


def _work() -> None:
    op.create_table(
        "command",
        sa.Column("id", WORDS, nullable=False),
        sa.Column("kind", WORDS, nullable=False),
        sa.Column("job_id", WORDS, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("due_at", MOMENT, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("outages", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("token", WORDS, nullable=True),
        sa.Column("leased_until", MOMENT, nullable=True),
        sa.Column("again_at", MOMENT, nullable=True),
        sa.Column("done_at", MOMENT, nullable=True),
        sa.Column("parked_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("command_due", "command", ["due_at", "id"], sqlite_where=OPEN, postgresql_where=OPEN)
    op.create_index("command_leased", "command", ["job_id"], sqlite_where=LEASED, postgresql_where=LEASED)
    op.create_index(
        "command_open", "command", ["job_id", "attempt", "kind"], unique=True, sqlite_where=OPEN, postgresql_where=OPEN
    )
    op.create_table(
        "observer",
        sa.Column("fleet", WORDS, nullable=False),
        sa.Column("holder", WORDS, nullable=False),
        sa.Column("until", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("fleet"),
    )


def _feed() -> None:
    op.create_table(
        "feed_head",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("head", sa.BigInteger(), nullable=False),
        sa.Column("floor", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "feed",
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", MOMENT, nullable=False),
        sa.Column("kind", WORDS, nullable=False),
        sa.Column("subject", WORDS, nullable=False),
        sa.Column("job", WORDS, nullable=True),
        sa.Column("project", WORDS, nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("aspects", WORDS, nullable=False),
        sa.PrimaryKeyConstraint("position"),
    )
    op.create_table(
        "timeline",
        sa.Column("id", WORDS, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("job_id", WORDS, nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=True),
        sa.Column("project", WORDS, nullable=True),
        sa.Column("fleet", WORDS, nullable=True),
        sa.Column("in_fleet", WORDS, nullable=True),
        sa.Column("type", WORDS, nullable=False),
        sa.Column("severity", sa.Integer(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("first_at", MOMENT, nullable=False),
        sa.Column("last_at", MOMENT, nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("kubernetes_reason", WORDS, nullable=True),
        sa.Column("detail", DOCUMENT, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("timeline_by_attempt", "timeline", ["attempt", "position"])
    op.create_index("timeline_by_first", "timeline", ["first_at"])
    op.create_index("timeline_by_fleet", "timeline", ["in_fleet", "position"])
    op.create_index("timeline_by_job", "timeline", ["job_id", "attempt", "position"])
    op.create_index("timeline_by_kubernetes_reason", "timeline", ["kubernetes_reason", "position"])
    op.create_index("timeline_by_last", "timeline", ["last_at"])
    op.create_index("timeline_by_position", "timeline", ["position"], unique=True)
    op.create_index("timeline_by_project", "timeline", ["project", "position"])
    op.create_index("timeline_by_severity", "timeline", ["severity", "position"])
    op.create_index("timeline_by_type", "timeline", ["type", "position"])
    op.execute("INSERT INTO feed_head (id, head, floor) VALUES (1, 0, 0)")


def _output() -> None:
    op.create_table(
        "log_source",
        sa.Column("job_id", WORDS, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("key", WORDS, nullable=False),
        sa.Column("lines", sa.BigInteger(), nullable=False),
        sa.Column("state", WORDS, nullable=False),
        sa.Column("document", DOCUMENT, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "attempt", "key"),
    )
    op.create_table(
        "log_chunk",
        sa.Column("job_id", WORDS, nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("source", WORDS, nullable=False),
        sa.Column("first", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("last", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "attempt", "source", "first"),
    )
    op.create_table(
        "metric_series",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("job_id", WORDS, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("name", WORDS, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("metric_series_by_run", "metric_series", ["job_id", "attempt", "name"], unique=True)
    op.create_table(
        "metric_point",
        sa.Column("id", SERIAL, nullable=False),
        sa.Column("series", sa.BigInteger(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=True),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("non_finite", WORDS, nullable=True),
        sa.Column("at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["series"], ["metric_series.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("metric_point_by_step", "metric_point", ["series", "step", "id"])


def _code() -> None:
    op.create_table(
        "code",
        sa.Column("digest", WORDS, nullable=False),
        sa.Column("files", sa.Integer(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("transport_sha256", WORDS, nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_table(
        "upload",
        sa.Column("digest", WORDS, nullable=False),
        sa.Column("transport_sha256", WORDS, nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("files", sa.Integer(), nullable=False),
        sa.Column("requested_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_table(
        "capsule",
        sa.Column("digest", WORDS, nullable=False),
        sa.Column("code", WORDS, nullable=False),
        sa.Column("files", sa.Integer(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("transport_sha256", WORDS, nullable=False),
        sa.Column("runner_digest", WORDS, nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_table(
        "inline_code",
        sa.Column("job_id", WORDS, nullable=False),
        sa.Column("files", DOCUMENT, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id"),
    )
    op.create_table(
        "idempotency",
        sa.Column("project", WORDS, nullable=False),
        sa.Column("mutation", WORDS, nullable=False),
        sa.Column("key", WORDS, nullable=False),
        sa.Column("body_sha256", WORDS, nullable=False),
        sa.Column("job_id", WORDS, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["job.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("project", "mutation", "key"),
    )
