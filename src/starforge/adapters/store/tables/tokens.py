"""Tokens of the people and programs that may ask."""

from datetime import datetime

from sqlmodel import Field, SQLModel

from starforge.adapters.store.columns import Document, Moment, Words


class TokenRow(SQLModel, table=True):
    __tablename__ = "token"

    id: str = Field(primary_key=True, sa_type=Words)
    secret_sha256: str = Field(sa_type=Words, repr=False)
    name: str = Field(sa_type=Words)
    role: str = Field(sa_type=Words)
    projects: tuple[str, ...] | None = Field(sa_type=Document(tuple[str, ...]))
    project: str | None = Field(sa_type=Words)
    created_at: datetime = Field(sa_type=Moment)
    expires_at: datetime | None = Field(sa_type=Moment)
    revoked_at: datetime | None = Field(sa_type=Moment)
    last_used_at: datetime | None = Field(sa_type=Moment)
