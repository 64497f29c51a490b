"""Commands, and who observes a fleet."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, text
from sqlmodel import Field, SQLModel

from starforge.adapters.store.columns import LongText, Moment, Words

OPEN = text("done_at IS NULL AND parked_at IS NULL")
LEASED = text("leased_until IS NOT NULL")


class CommandRow(SQLModel, table=True):
    """A command. `again_at` is set when it is asked for anew while somebody works on it, so that it runs once more."""

    __tablename__ = "command"
    __table_args__ = (
        Index("command_open", "job_id", "attempt", "kind", unique=True, sqlite_where=OPEN, postgresql_where=OPEN),
        Index("command_due", "due_at", "id", sqlite_where=OPEN, postgresql_where=OPEN),
        Index("command_leased", "job_id", sqlite_where=LEASED, postgresql_where=LEASED),
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
    """The lease of the one process that watches a fleet."""

    __tablename__ = "observer"

    fleet: str = Field(primary_key=True, sa_type=Words)
    holder: str = Field(sa_type=Words)
    until: datetime = Field(sa_type=Moment)
