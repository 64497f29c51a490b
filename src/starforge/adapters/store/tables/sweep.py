"""What is remembered for the sweep of a fleet."""

from datetime import datetime

from sqlmodel import Field, SQLModel

from starforge.adapters.store.columns import Moment, Words


class InstallationRow(SQLModel, table=True):
    """Who we are, in one row: what we launch bears this id, as others may share the cluster."""

    __tablename__ = "installation"

    number: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    id: str = Field(sa_type=Words)


class StrayRow(SQLModel, table=True):
    """A run of a fleet that has no live row. Its job need not exist, so nothing is referred to."""

    __tablename__ = "stray"

    fleet: str = Field(primary_key=True, sa_type=Words)
    job_id: str = Field(primary_key=True, sa_type=Words)
    attempt: int = Field(primary_key=True, sa_column_kwargs={"autoincrement": False})
    since: datetime = Field(sa_type=Moment)
