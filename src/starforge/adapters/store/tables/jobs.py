"""Jobs, their attempts, and the Pods of those."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, text
from sqlmodel import Field, SQLModel

from starforge.adapters.store.columns import Document, Moment, Words
from starforge.domain.job import Attempt
from starforge.domain.observation import PodView
from starforge.domain.spec import JobSpec

DUE = text("due_at IS NOT NULL")
HELD = text("teardown_reason IS NOT NULL")


class JobRow(SQLModel, table=True):
    """A job. What is filtered or ordered on is a column, that of its attempt too; `due_at` is None once decided."""

    __tablename__ = "job"
    __table_args__ = (
        Index("job_by_created", "created_at", "id"),
        Index("job_by_updated", "updated_at", "id"),
        Index("job_by_started", "started_at", "id"),
        Index("job_by_ended", "ended_at", "id"),
        Index("job_by_name", "name", "id"),
        Index("job_by_priority", "priority", "id"),
        Index("job_by_gpus", "gpus", "id"),
        Index("job_by_project", "project", "created_at", "id"),
        Index("job_by_fleet", "fleet", "created_at", "id"),
        Index("job_by_state", "state", "created_at", "id"),
        Index("job_by_active", "active", "created_at", "id"),
        Index("job_by_outcome", "outcome", "created_at", "id"),
        Index("job_by_reason", "reason", "created_at", "id"),
        Index(
            "job_by_teardown_reason",
            "teardown_reason",
            "created_at",
            "id",
            sqlite_where=HELD,
            postgresql_where=HELD,
        ),
        Index("job_by_creator", "created_by", "created_at", "id"),
        Index("job_by_key", "idempotency_key"),
        Index("job_by_code", "code", "created_at", "id"),
        Index("job_due", "due_at", "id", sqlite_where=DUE, postgresql_where=DUE),
    )

    id: str = Field(primary_key=True, sa_type=Words)
    revision: int
    attempt: int
    name: str = Field(sa_type=Words)
    project: str = Field(sa_type=Words)
    fleet: str | None = Field(sa_type=Words)
    state: str = Field(sa_type=Words)
    active: bool
    outcome: str | None = Field(sa_type=Words)
    reason: str | None = Field(sa_type=Words)
    teardown_reason: str | None = Field(sa_type=Words)
    created_by: str = Field(sa_type=Words)
    created_by_kind: str = Field(sa_type=Words)
    created_at: datetime = Field(sa_type=Moment)
    updated_at: datetime = Field(sa_type=Moment)
    started_at: datetime | None = Field(sa_type=Moment)
    ended_at: datetime | None = Field(sa_type=Moment)
    priority: int
    gpus: int
    due_at: datetime | None = Field(sa_type=Moment)
    code: str | None = Field(sa_type=Words)
    capsule: str | None = Field(sa_type=Words)
    idempotency_key: str | None = Field(sa_type=Words)
    spec: JobSpec = Field(sa_type=Document(JobSpec))


class AttemptRow(SQLModel, table=True):
    __tablename__ = "attempt"

    job_id: str = Field(primary_key=True, sa_type=Words, sa_column_args=[ForeignKey("job.id", ondelete="CASCADE")])
    number: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    document: Attempt = Field(sa_type=Document(Attempt))


class PodRow(SQLModel, table=True):
    __tablename__ = "pod"

    job_id: str = Field(primary_key=True, sa_type=Words, sa_column_args=[ForeignKey("job.id", ondelete="CASCADE")])
    attempt: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    uid: str = Field(primary_key=True, sa_type=Words)
    created_at: datetime = Field(sa_type=Moment)
    name: str = Field(sa_type=Words)
    document: PodView = Field(sa_type=Document(PodView))


class JobSeriesRow(SQLModel, table=True):
    """The GPU series that a job's pools name."""

    __tablename__ = "job_series"
    __table_args__ = (Index("job_series_by_series", "series", "job_id"),)

    job_id: str = Field(primary_key=True, sa_type=Words, sa_column_args=[ForeignKey("job.id", ondelete="CASCADE")])
    series: str = Field(primary_key=True, sa_type=Words)


class JobLabelRow(SQLModel, table=True):
    __tablename__ = "job_label"
    __table_args__ = (Index("job_label_by_key", "key", "value", "job_id"),)

    job_id: str = Field(primary_key=True, sa_type=Words, sa_column_args=[ForeignKey("job.id", ondelete="CASCADE")])
    key: str = Field(primary_key=True, sa_type=Words)
    value: str = Field(sa_type=Words)
