"""The feed of changes, and the timeline of each job."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlmodel import Field, SQLModel

from starforge.adapters.store.columns import Big, Document, LongText, Moment, Words
from starforge.domain.timeline import Detail


class FeedHeadRow(SQLModel, table=True):
    """The only row says which position is the newest, and which the last that was dropped."""

    __tablename__ = "feed_head"

    id: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    head: int = Field(sa_type=Big)
    floor: int = Field(sa_type=Big)


class FeedTableRow(SQLModel, table=True):
    """A change. `aspects` are words parted by spaces."""

    __tablename__ = "feed"

    position: int = Field(primary_key=True, sa_type=Big, sa_column_kwargs={"autoincrement": False})
    at: datetime = Field(sa_type=Moment)
    kind: str = Field(sa_type=Words)
    subject: str = Field(sa_type=Words)
    job: str | None = Field(sa_type=Words)
    project: str | None = Field(sa_type=Words)
    revision: int
    aspects: str = Field(sa_type=Words)


class TimelineRow(SQLModel, table=True):
    """An entry. `position` is that of the feed when it was first written, so that entries are in commit order.

    `fleet` is the entry's own; `in_fleet` also that of its job. `severity` is its rank.
    """

    __tablename__ = "timeline"
    __table_args__ = (
        Index("timeline_by_position", "position", unique=True),
        Index("timeline_by_job", "job_id", "attempt", "position"),
        Index("timeline_by_project", "project", "position"),
        Index("timeline_by_fleet", "in_fleet", "position"),
        Index("timeline_by_type", "type", "position"),
        Index("timeline_by_severity", "severity", "position"),
        Index("timeline_by_attempt", "attempt", "position"),
        Index("timeline_by_kubernetes_reason", "kubernetes_reason", "position"),
        Index("timeline_by_first", "first_at"),
        Index("timeline_by_last", "last_at"),
    )

    id: str = Field(primary_key=True, sa_type=Words)
    position: int = Field(sa_type=Big)
    job_id: str | None = Field(sa_type=Words, sa_column_args=[ForeignKey("job.id", ondelete="CASCADE")])
    attempt: int | None
    project: str | None = Field(sa_type=Words)
    fleet: str | None = Field(sa_type=Words)
    in_fleet: str | None = Field(sa_type=Words)
    type: str = Field(sa_type=Words)
    severity: int
    message: str = Field(sa_type=LongText)
    first_at: datetime = Field(sa_type=Moment)
    last_at: datetime = Field(sa_type=Moment)
    count: int = Field(sa_type=Big)
    kubernetes_reason: str | None = Field(sa_type=Words)
    detail: Detail = Field(sa_type=Document(Detail))
