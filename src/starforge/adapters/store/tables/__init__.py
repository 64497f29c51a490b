"""The tables. Statements are built on them with SQLAlchemy's core, as most of them write or read many rows at once."""

from sqlalchemy import Table
from sqlmodel import SQLModel

from starforge.adapters.store.tables.capacity import CapacityRow, NodeRow
from starforge.adapters.store.tables.code import CapsuleRow, CodeRow, IdempotencyRow, InlineCodeRow, UploadRow
from starforge.adapters.store.tables.feed import FeedHeadRow, FeedTableRow, TimelineRow
from starforge.adapters.store.tables.health import HealthRow
from starforge.adapters.store.tables.jobs import AttemptRow, JobLabelRow, JobRow, JobSeriesRow, PodRow
from starforge.adapters.store.tables.output import (
    LogChunkRow,
    LogMoveRow,
    LogPartRow,
    LogSourceRow,
    MetricPointRow,
    MetricSeriesRow,
)
from starforge.adapters.store.tables.sweep import InstallationRow, StrayRow
from starforge.adapters.store.tables.tokens import TokenRow
from starforge.adapters.store.tables.work import CommandRow, ObserverRow, PulseRow

METADATA = SQLModel.metadata


def _core(model: type[SQLModel]) -> Table:
    return METADATA.tables[str(model.__tablename__)]


JOB, ATTEMPT, POD = _core(JobRow), _core(AttemptRow), _core(PodRow)
JOB_SERIES, JOB_LABEL = _core(JobSeriesRow), _core(JobLabelRow)
COMMAND, OBSERVER, PULSE = _core(CommandRow), _core(ObserverRow), _core(PulseRow)
IDEMPOTENCY = _core(IdempotencyRow)
FEED, FEED_HEAD, TIMELINE = _core(FeedTableRow), _core(FeedHeadRow), _core(TimelineRow)
LOG_SOURCE, LOG_CHUNK = _core(LogSourceRow), _core(LogChunkRow)
LOG_PART, LOG_MOVE = _core(LogPartRow), _core(LogMoveRow)
METRIC_SERIES, METRIC_POINT = _core(MetricSeriesRow), _core(MetricPointRow)
CODE, UPLOAD, CAPSULE, INLINE_CODE = _core(CodeRow), _core(UploadRow), _core(CapsuleRow), _core(InlineCodeRow)
TOKEN, HEALTH = _core(TokenRow), _core(HealthRow)
NODE, CAPACITY = _core(NodeRow), _core(CapacityRow)
INSTALLATION, STRAY = _core(InstallationRow), _core(StrayRow)
