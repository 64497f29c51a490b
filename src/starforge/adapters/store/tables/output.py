"""What a job's code prints and reports: logs and metrics."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlmodel import Field, SQLModel

from starforge.adapters.store.columns import Big, Document, LongText, Moment, Serial, Words
from starforge.domain.logs import LogSource


class LogSourceRow(SQLModel, table=True):
    """A log as it is after the newest append; `lines` and `state` are columns to guard the next one."""

    __tablename__ = "log_source"

    job_id: str = Field(primary_key=True, sa_type=Words, sa_column_args=[ForeignKey("job.id", ondelete="CASCADE")])
    attempt: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    key: str = Field(primary_key=True, sa_type=Words)
    lines: int = Field(sa_type=Big)
    state: str = Field(sa_type=Words)
    document: LogSource = Field(sa_type=Document(LogSource))


class LogChunkRow(SQLModel, table=True):
    """Lines `first` to `last` of a source as one JSON text (see domain/chunks.py)."""

    __tablename__ = "log_chunk"

    job_id: str = Field(primary_key=True, sa_type=Words, sa_column_args=[ForeignKey("job.id", ondelete="CASCADE")])
    attempt: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    source: str = Field(primary_key=True, sa_type=Words)
    first: int = Field(primary_key=True, sa_type=Big, sa_column_kwargs={"autoincrement": False})
    last: int = Field(sa_type=Big)
    body: str = Field(sa_type=LongText)


class LogPartRow(SQLModel, table=True):
    """Lines `first` to `last` of a source as the object `object`; `blocks` says where each is in it (see parts.py)."""

    __tablename__ = "log_part"

    job_id: str = Field(primary_key=True, sa_type=Words, sa_column_args=[ForeignKey("job.id", ondelete="CASCADE")])
    attempt: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    source: str = Field(primary_key=True, sa_type=Words)
    first: int = Field(primary_key=True, sa_type=Big, sa_column_kwargs={"autoincrement": False})
    last: int = Field(sa_type=Big)
    object: str = Field(sa_type=LongText)
    blocks: str = Field(sa_type=LongText)


class LogMoveRow(SQLModel, table=True):
    """An archived source that may have rows, and when it is its turn to have some moved; gone when it has none."""

    __tablename__ = "log_move"
    __table_args__ = (Index("log_move_due", "due_at"),)

    job_id: str = Field(primary_key=True, sa_type=Words, sa_column_args=[ForeignKey("job.id", ondelete="CASCADE")])
    attempt: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    source: str = Field(primary_key=True, sa_type=Words)
    due_at: datetime = Field(sa_type=Moment)


class MetricSeriesRow(SQLModel, table=True):
    """A metric of a run; ids rise in the order of first report."""

    __tablename__ = "metric_series"
    __table_args__ = (Index("metric_series_by_run", "job_id", "attempt", "name", unique=True),)

    id: int | None = Field(default=None, primary_key=True, sa_type=Serial)
    job_id: str = Field(sa_type=Words, sa_column_args=[ForeignKey("job.id", ondelete="CASCADE")])
    attempt: int
    name: str = Field(sa_type=Words)


class MetricPointRow(SQLModel, table=True):
    """A value of a metric; ids rise in the order of reports."""

    __tablename__ = "metric_point"
    __table_args__ = (
        Index("metric_point_by_step", "series", "step", "id"),
        Index("metric_point_by_series", "series", "id"),
    )

    id: int | None = Field(default=None, primary_key=True, sa_type=Serial)
    series: int = Field(sa_type=Big, sa_column_args=[ForeignKey("metric_series.id", ondelete="CASCADE")])
    step: int | None = Field(sa_type=Big)
    value: float | None
    non_finite: str | None = Field(sa_type=Words)
    at: datetime = Field(sa_type=Moment)
