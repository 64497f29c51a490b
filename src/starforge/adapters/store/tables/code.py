"""Code on its way into Capsules, and what was asked for before."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlmodel import Field, SQLModel

from starforge.adapters.store.columns import Big, Document, Moment, Words
from starforge.domain.capsule import InlineFile


class CodeRow(SQLModel, table=True):
    __tablename__ = "code"

    digest: str = Field(primary_key=True, sa_type=Words)
    files: int
    bytes: int = Field(sa_type=Big)
    transport_sha256: str = Field(sa_type=Words)


class UploadRow(SQLModel, table=True):
    __tablename__ = "upload"

    digest: str = Field(primary_key=True, sa_type=Words)
    transport_sha256: str = Field(sa_type=Words)
    bytes: int = Field(sa_type=Big)
    files: int
    requested_at: datetime = Field(sa_type=Moment)


class CapsuleRow(SQLModel, table=True):
    __tablename__ = "capsule"

    digest: str = Field(primary_key=True, sa_type=Words)
    code: str = Field(sa_type=Words)
    files: int
    bytes: int = Field(sa_type=Big)
    transport_sha256: str = Field(sa_type=Words)
    runner_digest: str = Field(sa_type=Words)
    created_at: datetime = Field(sa_type=Moment)


class InlineCodeRow(SQLModel, table=True):
    __tablename__ = "inline_code"

    job_id: str = Field(primary_key=True, sa_type=Words, sa_column_args=[ForeignKey("job.id", ondelete="CASCADE")])
    files: tuple[InlineFile, ...] = Field(sa_type=Document(tuple[InlineFile, ...]))


class IdempotencyRow(SQLModel, table=True):
    __tablename__ = "idempotency"
    __table_args__ = (Index("idempotency_by_created", "created_at"),)

    project: str = Field(primary_key=True, sa_type=Words)
    mutation: str = Field(primary_key=True, sa_type=Words)
    key: str = Field(primary_key=True, sa_type=Words)
    body_sha256: str = Field(sa_type=Words)
    job_id: str = Field(sa_type=Words, sa_column_args=[ForeignKey("job.id", ondelete="CASCADE")])
    attempt: int
    created_at: datetime = Field(sa_type=Moment)
