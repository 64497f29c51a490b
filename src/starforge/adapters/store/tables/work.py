"""Commands, who observes a fleet, and what goes on all the time."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, text
from sqlmodel import Field, SQLModel

from starforge.adapters.store.columns import LongText, Moment, Words

OPEN = text("done_at IS NULL AND parked_at IS NULL")
PARKED = text("parked_at IS NOT NULL")
LEASED = text("leased_until IS NOT NULL")
DONE = text("done_at IS NOT NULL")


class CommandRow(SQLModel, table=True):
    """A command. `again_at` is set when it is asked for anew while somebody works on it, so that it runs once more."""

    __tablename__ = "command"
    __table_args__ = (
        Index("command_open", "job_id", "attempt", "kind", unique=True, sqlite_where=OPEN, postgresql_where=OPEN),
        Index("command_due", "due_at", "id", sqlite_where=OPEN, postgresql_where=OPEN),
        Index("command_leased", "job_id", sqlite_where=LEASED, postgresql_where=LEASED),
        Index("command_done", "done_at", sqlite_where=DONE, postgresql_where=DONE),
        Index("command_parked", "parked_at", "id", sqlite_where=PARKED, postgresql_where=PARKED),
    )

    id: str = Field(primary_key=True, sa_type=Words)
    kind: str = Field(sa_type=Words)
    job_id: str = Field(sa_type=Words, sa_column_args=[ForeignKey("job.id", ondelete="CASCADE")])
    attempt: int
    due_at: datetime = Field(sa_type=Moment)
    tries: int
    outages: int
    error: str | None = Field(sa_type=LongText)
    token: str | None = Field(sa_type=Words)
    leased_until: datetime | None = Field(sa_type=Moment)
    again_at: datetime | None = Field(sa_type=Moment)
    done_at: datetime | None = Field(sa_type=Moment)
    parked_at: datetime | None = Field(sa_type=Moment)


class ObserverRow(SQLModel, table=True):
    """The lease of the one process that watches a fleet, and what that has heard last."""

    __tablename__ = "observer"

    fleet: str = Field(primary_key=True, sa_type=Words)
    holder: str = Field(sa_type=Words)
    until: datetime = Field(sa_type=Moment)
    heard_at: datetime | None = Field(sa_type=Moment)
    lag_s: float | None
    problem: str | None = Field(sa_type=LongText)


class PulseRow(SQLModel, table=True):
    """Something that has gone on without a pause since `since`, and did last `at`."""

    __tablename__ = "pulse"

    name: str = Field(primary_key=True, sa_type=Words)
    since: datetime = Field(sa_type=Moment)
    at: datetime = Field(sa_type=Moment)
