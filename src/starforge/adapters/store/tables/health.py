"""What was last found about the health of everything."""

from sqlmodel import Field, SQLModel

from starforge.adapters.store.columns import Document, Words
from starforge.domain.health import HealthReport


class HealthRow(SQLModel, table=True):
    """The newest report about a subject; `revision` is a column to guard the next one."""

    __tablename__ = "health"

    subject: str = Field(primary_key=True, sa_type=Words)
    revision: int
    document: HealthReport = Field(sa_type=Document(HealthReport))
