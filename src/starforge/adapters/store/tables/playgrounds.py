"""Playgrounds."""

from datetime import datetime

from sqlalchemy import Index, text
from sqlmodel import Field, SQLModel

from starforge.adapters.store.columns import Document, Moment, Words
from starforge.domain.playground import Playground

DUE = text("due_at IS NOT NULL")


class PlaygroundRow(SQLModel, table=True):
    """A playground as `document`. What is filtered or ordered on is a column; `due_at` is None once it has ended."""

    __tablename__ = "playground"
    __table_args__ = (
        Index("playground_by_created", "created_at", "id"),
        Index("playground_by_project", "project", "created_at", "id"),
        Index("playground_by_fleet", "fleet", "created_at", "id"),
        Index("playground_by_state", "state", "created_at", "id"),
        Index("playground_by_active", "active", "created_at", "id"),
        Index("playground_by_creator", "created_by", "created_at", "id"),
        Index("playground_by_job", "from_job", "created_at", "id"),
        Index("playground_due", "due_at", "id", sqlite_where=DUE, postgresql_where=DUE),
    )

    id: str = Field(primary_key=True, sa_type=Words)
    revision: int
    project: str = Field(sa_type=Words)
    fleet: str | None = Field(sa_type=Words)
    state: str = Field(sa_type=Words)
    active: bool
    created_by: str = Field(sa_type=Words)
    created_at: datetime = Field(sa_type=Moment)
    from_job: str | None = Field(sa_type=Words)
    due_at: datetime | None = Field(sa_type=Moment)
    document: Playground = Field(sa_type=Document(Playground))
