"""Logs, their sources and lines."""

import re
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Self

import strawberry
from strawberry import Info, argument

from starforge.api import ids
from starforge.api.context import of_info
from starforge.api.directives import cost
from starforge.api.enums import ArchiveState
from starforge.api.interfaces import Node
from starforge.api.links import link
from starforge.api.mirror import mirror
from starforge.api.scalars import BigInt
from starforge.api.values import PageInfo, Reason, SignedRequest
from starforge.domain import job, logs
from starforge.domain.logs import LineMark, LogKind, LogState

if TYPE_CHECKING:
    from starforge.api.jobs.cluster import Pod

ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
LazyPod = Annotated["Pod", strawberry.lazy("starforge.api.jobs.cluster")]


@strawberry.type(description="Lines that could not be had.")
class LogGap:
    after_line: int = strawberry.field(description=("Number of the last line before the gap, 0 if it is at the start."))
    message: str = strawberry.field(description="Why, for example that the node was lost.")
    lines: int | None = strawberry.field(description="Lines missing; null if that can't be told.")


@strawberry.type(description="One log: the driver's, or that of a container.")
class LogSource(Node):
    row: strawberry.Private[logs.LogSource]
    key: str = strawberry.field(
        description=(
            "Key to name it by in `source` arguments: `driver`, or `pod/<pod>/<container>`, with `/previous` for the "
            "run before a restart."
        )
    )
    kind: LogKind = strawberry.field(description="What it is.")
    attempt: int | None = strawberry.field(description=("Attempt it belongs to, from 1, or null for a playground."))

    @strawberry.field(description="The Pod it is of; null for the driver.")
    async def pod(self, info: Info) -> LazyPod | None:
        from starforge.api.jobs.cluster import Pod

        pods = await of_info(info).loaders.pods.load(self.row.run)
        found = next((pod for pod in pods if pod.name == self.row.pod), None)
        return Pod.of(found, self.row.run) if found else None

    container: str | None = strawberry.field(description="Name of the container; null for the driver.")
    state: LogState = strawberry.field(description="Whether more lines may come.")
    lines: int = strawberry.field(description="Lines so far.")
    bytes: BigInt = strawberry.field(description="Bytes so far.")
    first_line_at: datetime | None = strawberry.field(description="Time of the first line; null if there is none.")
    last_line_at: datetime | None = strawberry.field(description="Time of the last line; null if there is none.")
    closed_at: datetime | None = strawberry.field(description="When it was closed; null before.")
    sha256: str | None = strawberry.field(
        description=("sha256 of the whole text, in lower-case hexadecimal; null before it is closed.")
    )
    gaps: list[LogGap] = strawberry.field(
        description=("Where and why lines are missing, in line order; empty when nothing is.")
    )

    @strawberry.field(
        description=(
            "A link to download the whole text, or null before it is archived or if the caller may not; only in "
            "queries, never in subscriptions."
        ),
        directives=[cost(5)],
    )
    async def download(
        self,
        info: Info,
        expires_in_seconds: Annotated[int, argument("Life of the link in seconds, 60 to 3,600.")] = 300,
    ) -> SignedRequest | None:
        return await link(of_info(info), self.row.object_key, expires_in_seconds)

    @classmethod
    def of(cls, row: logs.LogSource) -> Self:
        return mirror(
            cls,
            row,
            id=strawberry.ID(ids.log(row.run, row.key)),
            row=row,
            attempt=row.run.attempt,
            gaps=[mirror(LogGap, gap) for gap in row.gaps],
        )


@strawberry.type(description="A line of a log.", directives=[cost(0)])
class LogLine:
    number: int = strawberry.field(
        description=("Number within its source, from 1, without holes except where `gaps` says.")
    )
    at: datetime | None = strawberry.field(
        description=("When it was written, as the container runtime tells it; null if not told.")
    )
    text: str = strawberry.field(
        description=("Text without the line end; escape sequences are kept unless `plain` was asked for.")
    )
    marks: list[LineMark] = strawberry.field(description="What was done to it; almost always empty.")

    @classmethod
    def of(cls, row: logs.LogLine, *, plain: bool = False) -> Self:
        return mirror(cls, row, text=ANSI.sub("", row.text) if plain else row.text, marks=list(row.marks))


@strawberry.type(description="A line and its cursor.", directives=[cost(0)])
class LogLineEdge:
    cursor: str = strawberry.field(description=("Cursor of this line, also good as `after` of the log subscriptions."))
    node: LogLine = strawberry.field(description="The line.")


@strawberry.type(description="A page of log lines.")
class LogLineConnection:
    edges: list[LogLineEdge] = strawberry.field(description="Lines with their cursors.")
    nodes: list[LogLine] = strawberry.field(description="The lines alone.")
    page_info: PageInfo = strawberry.field(description="Where the page lies.")
    source: LogSource | None = strawberry.field(description="The log they are of; null until it exists.")
    total_count: int = strawberry.field(description="Lines in the log so far, exact.")


@strawberry.type(description="The stored logs of an attempt.")
class LogArchive:
    state: ArchiveState = strawberry.field(description="How far it is.")
    sources: int = strawberry.field(description="Logs in it.")
    lines: int = strawberry.field(description="Lines in all.")
    bytes: BigInt = strawberry.field(description="Bytes in all.")
    sha256: str | None = strawberry.field(
        description=("sha256 of the archive's manifest, in lower-case hexadecimal; null until verified.")
    )
    verified_at: datetime | None = strawberry.field(description=("When it was read back and verified; null before."))
    reason: Reason | None = strawberry.field(description="What is missing and why; null when nothing is.")

    @classmethod
    def of(cls, row: job.LogArchive | None) -> Self | None:
        if row is None:
            return None
        state = ArchiveState.TRUNCATED if row.reason else ArchiveState.COMPLETE
        return mirror(cls, row, state=state, reason=Reason.maybe(row.reason))
