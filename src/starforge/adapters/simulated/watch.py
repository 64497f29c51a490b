"""Tells what happens to runs: every picture in turn, Events as they are counted, and lines since a cursor."""

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from itertools import islice

from starforge.adapters.simulated.events import events, next_repeat
from starforge.adapters.simulated.picture import picture, same_picture
from starforge.adapters.simulated.record import Record
from starforge.adapters.simulated.streams import Stream, streams
from starforge.adapters.simulated.timeline import Timeline, timeline
from starforge.adapters.simulated.world import World
from starforge.domain.names import RunKey
from starforge.domain.observation import EventSeen, LogSeen, RawLine, RunPhase, RunSeen, Seen
from starforge.domain.ports import Resume

_BATCH = 500  # lines told at once

ResumeAt = Callable[[RunKey, str], Resume]


class Watcher:
    """One watch: knows what it has told. `since` is the time up to which it has told everything."""

    def __init__(self, world: World, resume: ResumeAt, since: datetime) -> None:
        self._world, self._resume, self.since = world, resume, since
        self._told: dict[RunKey, _RunTold] = {}

    def advance(self, records: Sequence[Record], now: datetime) -> Iterator[Seen]:
        """Everything since the last time. `records` are all runs of which something was there after `since`."""
        for record in records:
            told = self._told.setdefault(record.run, _RunTold(record.run, self._resume))
            yield from told.advance(timeline(self._world, record), self.since, now)
            if told.gone:
                del self._told[record.run]
        self.since = now


class _RunTold:
    """What was told of one run."""

    def __init__(self, run: RunKey, resume: ResumeAt) -> None:
        self._run, self._resume = run, resume
        self._seen: RunSeen | None = None
        self._events: dict[str, EventSeen] = {}
        self._follows: dict[str, _Follow] = {}
        self._life: Timeline | None = None
        self._again_at: datetime | None = None

    @property
    def gone(self) -> bool:
        return self._seen is not None and self._seen.phase is RunPhase.ABSENT

    def advance(self, life: Timeline, since: datetime, now: datetime) -> Iterator[Seen]:
        new = life is not self._life
        if new:
            self._life = life
            self._follow(life)
        changed = [time for time in life.changes if since < time < now]
        for at in [*changed, now]:
            if new or changed or self._may_change(life, at):
                yield from self._pictures(life, at)
                yield from self._new_events(life, at)
            for follow in self._follows.values():
                yield from follow.lines(at)

    def _may_change(self, life: Timeline, at: datetime) -> bool:
        """Whether there may be news: a step of its life, or an Event that comes again."""
        return at in life.changes or (self._again_at is not None and self._again_at <= at)

    def _pictures(self, life: Timeline, at: datetime) -> Iterator[RunSeen]:
        seen = picture(life, at)
        if not same_picture(self._seen, seen):
            self._seen = seen
            yield seen

    def _new_events(self, life: Timeline, at: datetime) -> Iterator[EventSeen]:
        found = events(life, at)
        self._again_at = next_repeat(life, found, at)
        for event in found:
            if self._events.get(event.uid) != event:
                self._events[event.uid] = event
                yield event

    def _follow(self, life: Timeline) -> None:
        """Follow the streams of `life`, and no more those that will not be because it ends before."""
        before, self._follows = self._follows, {}
        for stream in streams(life):
            follow = before.get(stream.source) or _Follow(self._run, self._resume, stream)
            follow.set(stream)
            self._follows[stream.source] = follow


class _Follow:
    """One stream from a cursor on, which is the number of lines before it."""

    def __init__(self, run: RunKey, resume: ResumeAt, stream: Stream) -> None:
        self._run, self._resume, self._stream = run, resume, stream
        self._count: int | None = None
        self._closed = False
        self._rest: Iterator[RawLine] = iter(())
        self._next: RawLine | None = None

    def set(self, stream: Stream) -> None:
        """Go on with `stream`, which has the same lines as before up to now."""
        self._stream = stream
        if self._count is not None:
            self._skip_to(self._count)

    def lines(self, until: datetime) -> Iterator[LogSeen]:
        """What there is up to a time, in batches; the last one closes the stream when its time has come."""
        stream = self._stream
        if self._closed or not self._opened(stream, until):
            return
        closes = stream.closes_at is not None and stream.closes_at <= until
        while self._has_line(until):
            batch = tuple(islice(self._taken(until), _BATCH))
            self._closed = closes and not self._has_line(until)
            yield self._told(stream, batch)
        if closes and not self._closed:
            self._closed = True
            yield self._told(stream, ())

    def _opened(self, stream: Stream, until: datetime) -> bool:
        """Whether there is something to tell; asks where to go on before the first line."""
        if self._count is not None:
            return True
        first = next(stream.lines(), None)
        has_line = first is not None and first.at is not None and first.at <= until
        if not has_line and (stream.closes_at is None or stream.closes_at > until):
            return False
        resume = self._resume(self._run, stream.source)
        self._closed = resume.closed
        self._skip_to(int(resume.cursor or 0))
        return not self._closed

    def _skip_to(self, count: int) -> None:
        self._count = count
        self._rest = islice(self._stream.lines(), count, None)
        self._next = next(self._rest, None)

    def _taken(self, until: datetime) -> Iterator[RawLine]:
        while self._next is not None and self._has_line(until):
            line, self._next = self._next, next(self._rest, None)
            self._count = (self._count or 0) + 1
            yield line

    def _has_line(self, until: datetime) -> bool:
        return self._next is not None and self._next.at is not None and self._next.at <= until

    def _told(self, stream: Stream, batch: tuple[RawLine, ...]) -> LogSeen:
        cursor = str(self._count)
        return LogSeen(self._run, stream.source, batch, cursor, stream.pod, stream.container, closed=self._closed)
