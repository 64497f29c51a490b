"""Log lines live: each once and in order, from rows or archive, until the log is closed."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import strawberry
from strawberry import Info, argument

from starforge.api import ids
from starforge.api.context import Context, of_subscription, source_of
from starforge.api.cursors import line_cursor, read_line_cursor
from starforge.api.enums import ChangeKind
from starforge.api.feed.listener import Listener
from starforge.api.feed.stream import BOOKMARK_S, TELL_AGAIN_S
from starforge.api.feed.types import LogChunk
from starforge.api.logs.pages import LINES_MAX, find_source, read_lines
from starforge.api.logs.types import LogLine, LogSource
from starforge.api.paging import bad_input
from starforge.api.transport.source import Joint, Source, Step
from starforge.domain import logs
from starforge.domain.changes import Aspect
from starforge.domain.errors import Defect, ObjectStoreUnavailable, StoreUnavailable
from starforge.domain.logs import DRIVER
from starforge.domain.names import JobId, RunKey
from starforge.domain.queries import FeedKind, FeedRow

CHUNK_BYTES = 256 * 1024
_log = logging.getLogger(__name__)


@strawberry.type
class LogSubscriptions:
    @strawberry.subscription(
        description=(
            "Log lines of one source of a job, each once and in order, from the archive or live with no seam, until "
            "the log is closed."
        )
    )
    async def job_logs(
        self,
        info: Info,
        id: Annotated[strawberry.ID, argument("Opaque id of the job.")],  # noqa: A002
        attempt: Annotated[
            int | None,
            argument(
                "Number of the attempt, from 1; the current one if left out, and the stream then stays with that attempt."
            ),
        ] = None,
        source: Annotated[
            str | None,
            argument("Key of a LogSource; `driver` if left out, and it may name a source that does not exist yet."),
        ] = None,
        after: Annotated[
            str | None,
            argument(
                "Cursor to resume from, of this subscription or of an edge of `Job.logs`; from the first line if left out."
            ),
        ] = None,
        tail: Annotated[
            int | None, argument("Start this many lines before the end, 0 to 1,000; not together with `after`.")
        ] = None,
    ) -> AsyncGenerator[LogChunk, None]:
        context = of_subscription(info)
        job = await context.job(JobId(str(id)))
        if attempt is not None and attempt < 1:
            raise bad_input(f"`attempt` counts from 1, so it can't be {attempt}.")
        run = RunKey(job.id, job.attempt.number if attempt is None else attempt)
        async with aclosing(_follow(context, run, source or DRIVER, after, tail)) as chunks:
            async for chunk in chunks:
                yield chunk


async def _follow(
    context: Context, run: RunKey, key: str, after: str | None, tail: int | None
) -> AsyncGenerator[LogChunk, None]:
    told = source_of(context)
    told.topic = ids.log(run, key)
    told.cursor = partial(line_cursor, told.topic)
    log = _Log(context, told, run, key)
    async with aclosing(log.live() if told.live else log.opening(after, tail)) as chunks:
        async for step, chunk in chunks:
            told.step = step
            yield chunk
            while told.take_again():
                await asyncio.sleep(TELL_AGAIN_S)
                yield chunk


Chunks = AsyncGenerator[tuple[Step, LogChunk], None]


class _Log:
    """Tells the lines of one log, whose places are the numbers of lines."""

    def __init__(self, context: Context, told: Source, run: RunKey, key: str) -> None:
        self._context, self._told, self._run, self._key = context, told, run, key
        self._source: logs.LogSource | None = None
        self._number = 0
        self._is_over = False

    async def opening(self, after: str | None, tail: int | None) -> Chunks:
        resume_at = self._told.resume_at
        given = read_line_cursor(after, self._told.topic)
        self._number = (
            await _first(self._context, self._run, self._key, given, tail) if resume_at is None else resume_at
        )
        async with aclosing(self._new()) as chunks:
            async for chunk in chunks:
                yield chunk
        if not self._has_ended():
            self._told.joint = Joint(self._number, self._number, {}, self._told.topic)

    async def live(self) -> Chunks:
        subject = f"{self._run} {self._key}"
        listener = Listener(lambda row: _concerns(row, self._run, subject), coalesce=True)
        leave = self._context.services.hub.listen(listener, [self._run.job])
        try:
            source = await find_source(self._context, self._run, self._key)
            self._number = source.lines if source else 0
            self._told.listening.set()
            while not self._has_ended():
                try:
                    async with aclosing(self._new()) as chunks:
                        async for chunk in chunks:
                            yield chunk
                except (StoreUnavailable, ObjectStoreUnavailable) as outage:
                    _log.warning("Following a log waits: %s", outage)
                    await asyncio.sleep(TELL_AGAIN_S)
                    continue
                if not self._has_ended() and not await listener.take(BOOKMARK_S):
                    yield Step(self._number), self._chunk(None)
        finally:
            leave()

    def _has_ended(self) -> bool:
        return self._is_over

    async def _new(self) -> Chunks:
        """Lines after those that were told, and the last word if nothing more can come."""
        self._context.renew(afresh=True)
        # Looked at before the log: once nothing more comes, no line can have come in between.
        cannot_come = self._source is None and await _cannot_come(self._context, self._run)
        source = self._source = await find_source(self._context, self._run, self._key)
        while source and self._number < source.lines:
            found = await _some(self._context, source, self._number + 1)
            if not found:
                raise Defect(f"Log {self._key} of {self._run} has {source.lines} lines, none after {self._number}.")
            for lines in split(found):
                since, self._number = self._number, lines[-1].number
                yield Step(self._number, since=since), self._chunk(lines)
        if cannot_come if source is None else source.is_over:
            self._is_over = True
            yield Step(self._number, ahead=True), self._chunk([], end=True)

    def _chunk(self, lines: list[logs.LogLine] | None, *, end: bool = False) -> LogChunk:
        return LogChunk(
            cursor=line_cursor(self._told.topic, self._number),
            kind=ChangeKind.BOOKMARK if lines is None else ChangeKind.UPDATED,
            at=datetime.now(UTC),
            source=LogSource.of(self._source) if self._source else None,
            lines=None if lines is None else [LogLine.of(line) for line in lines],
            end=end,
        )


def _concerns(row: FeedRow, run: RunKey, subject: str) -> bool:
    """Whether a row tells of this log, or of the end of its job, which is the end of a log that never came to be."""
    if row.kind is FeedKind.LOG:
        return row.subject == subject
    return row.kind is FeedKind.JOB and row.job == run.job and Aspect.STATE in row.aspects


async def _first(context: Context, run: RunKey, key: str, after: int | None, tail: int | None) -> int:
    """The line after which the stream begins."""
    if tail is None:
        return after or 0
    if after is not None or not 0 <= tail <= LINES_MAX:
        raise bad_input("`tail` is 0 to 1,000 and does not go with `after`.")
    source = await find_source(context, run, key)
    return max(0, source.lines - tail) if source else 0


async def _some(context: Context, source: logs.LogSource, first: int) -> list[logs.LogLine]:
    """At least one line and at most LINES_MAX lines, and not many more bytes than a chunk if lines are about equal."""
    last = first + source.lines_in(CHUNK_BYTES, LINES_MAX) - 1
    return await read_lines(context, source.run, source.key, first, min(source.lines, last))


def split(lines: Sequence[logs.LogLine]) -> list[list[logs.LogLine]]:
    """Lines in chunks of at most CHUNK_BYTES; a longer line is one of its own."""
    chunks: list[list[logs.LogLine]] = []
    room = 0
    for line in lines:
        size = len(line.text.encode())
        if not chunks or size > room:
            chunks.append([])
            room = CHUNK_BYTES
        chunks[-1].append(line)
        room -= size
    return chunks


async def _cannot_come(context: Context, run: RunKey) -> bool:
    """Whether nothing more can come of an attempt."""
    job = await context.job(run.job)
    return job.attempt.number > run.attempt or job.ended
