"""The nodes of each fleet as last seen."""

from datetime import datetime

from sqlalchemy import Index
from sqlmodel import Field, SQLModel

from starforge.adapters.store.columns import Big, Document, Moment, Words
from starforge.domain.capacity.nodes import NodeView


class NodeRow(SQLModel, table=True):
    """A node; `position` is that of the feed's row that told of it last. Without a document it is gone."""

    __tablename__ = "node"
    __table_args__ = (Index("node_by_position", "fleet", "position"),)

    fleet: str = Field(primary_key=True, sa_type=Words)
    name: str = Field(primary_key=True, sa_type=Words)
    position: int = Field(sa_type=Big)
    seen_at: datetime = Field(sa_type=Moment)
    document: NodeView | None = Field(sa_type=Document(NodeView))


class CapacityRow(SQLModel, table=True):
    """A fleet whose nodes were seen, if it has none; `position` is that of the newest row of the feed about them."""

    __tablename__ = "capacity"

    fleet: str = Field(primary_key=True, sa_type=Words)
    position: int = Field(sa_type=Big)
    seen_at: datetime = Field(sa_type=Moment)
