"""Steps of live streams."""

from datetime import datetime

import strawberry

from starforge.api.directives import list_size
from starforge.api.enums import ChangeKind
from starforge.api.events.types import Event
from starforge.api.jobs.types import Job
from starforge.api.logs.types import LogLine, LogSource
from starforge.domain.changes import Aspect


@strawberry.type(description="A place in the stream of all changes.")
class Feed:
    cursor: str = strawberry.field(
        description=("Opaque cursor that every subscription except the log ones accepts as `after`.")
    )
    at: datetime = strawberry.field(description="The server's time when the request began.")
    retention_seconds: int = strawberry.field(
        description=("Seconds for which a cursor can be resumed before it gives CURSOR_EXPIRED.")
    )


@strawberry.interface(description="One step of a live stream.")
class Change:
    cursor: str = strawberry.field(description="Opaque cursor to resume right after this step, on any gateway.")
    kind: ChangeKind = strawberry.field(description="What this step is.")
    at: datetime = strawberry.field(
        description=(
            "When it was committed here, or made in case of a bookmark; compare with your clock to count down "
            "correctly."
        )
    )


@strawberry.type(description="A step in the life of one or several jobs.")
class JobChange(Change):
    job_id: strawberry.ID | None = strawberry.field(description="Id of the job; null only in a bookmark.")
    job: Job | None = strawberry.field(
        description=(
            "The job as it is after this step, also if REMOVED from the filter; null in a bookmark and when it is "
            "gone for good."
        )
    )
    aspects: list[Aspect] = strawberry.field(
        description=(
            "What changed since the step before, so that a page can skip what it does not show; empty in a snapshot "
            "or bookmark."
        )
    )


@strawberry.type(description="A new or repeated event.")
class EventChange(Change):
    event: Event | None = strawberry.field(description="The event; null in a bookmark.")


@strawberry.type(description="Some lines of a log, at most 1,000 or 256 KiB.")
class LogChunk(Change):
    cursor: str = strawberry.field(
        description="Opaque cursor to resume right after the last of these lines; also good as `after` of `Job.logs`."
    )
    kind: ChangeKind = strawberry.field(description="What this step is: UPDATED with lines, BOOKMARK without.")
    source: LogSource | None = strawberry.field(description="The source the lines are from; null until it exists.")
    lines: list[LogLine] | None = strawberry.field(
        description="The lines in order; null in a bookmark.", directives=[list_size(100)]
    )
    end: bool = strawberry.field(
        description="True on the last step, after which the stream completes because the log is closed."
    )
