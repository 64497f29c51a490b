"""Follows the run directories: their state and their logs, from what there is now on."""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from starforge.adapters.local.nodes import Run
from starforge.adapters.local.reaping import is_orphaned, reap
from starforge.adapters.local.rundir import Phase, RunDir, RunOrder, Status
from starforge.adapters.local.seeing import CONTAINER, head_pod, run_key, seen
from starforge.adapters.local.tail import Lines, read_lines
from starforge.domain.capacity.nodes import NodeView
from starforge.domain.capacity.telling import NodeTeller
from starforge.domain.names import RunKey
from starforge.domain.observation import FleetHeard, LogSeen, RawLine, RunPhase, RunSeen, Seen
from starforge.domain.ports import Resume

LOOK_S = 0.2
HEARD_EVERY = 4

ResumeAt = Callable[[RunKey, str], Resume]
log = logging.getLogger(__name__)


@dataclass
class _Followed:
    """A run that is being followed; `stamp` tells whether its status was replaced since."""

    directory: RunDir
    order: RunOrder
    stamp: tuple[int, int] | None = None
    was_told: bool = False
    has_ended: bool = False
    offset: int | None = None
    log_closed: bool = False
    status: Status | None = None
    source: str = field(init=False)

    def __post_init__(self) -> None:
        self.source = f"pod/{head_pod(self.order)}/{CONTAINER}"


class Watch:
    """One observer's view of every run of the fleet, and of the nodes with these on them.

    `directories` lists the runs that there are right now.
    """

    def __init__(
        self,
        directories: Callable[[], list[RunDir]],
        resume: ResumeAt,
        now: Callable[[], datetime],
        nodes: Callable[[Iterable[Run]], Sequence[NodeView]],
    ) -> None:
        self._directories = directories
        self._resume = resume
        self._now, self._nodes = now, nodes
        self._teller = NodeTeller()
        self._followed: dict[str, _Followed] = {}

    def run(self, stop: threading.Event) -> Iterator[Seen]:
        turn = 0
        while not stop.is_set():
            if turn % HEARD_EVERY == 0:
                yield FleetHeard(self._now())
            turn += 1
            yield from self._look()
            stop.wait(LOOK_S)

    def _look(self) -> Iterator[Seen]:
        here = {directory.path.name: directory for directory in self._directories()}
        for name in self._followed.keys() - here.keys():
            yield RunSeen(run_key(self._followed.pop(name).order), RunPhase.ABSENT, self._now())
        for name, directory in here.items():
            if name not in self._followed:
                order = directory.order()
                if order is None:
                    continue
                self._followed[name] = _Followed(directory, order)
            try:
                yield from self._news(self._followed[name])
            except OSError as error:
                yield FleetHeard(self._now(), f"Run {self._followed[name].order.name} can't be looked at: {error}.")
        runs = ((run.order, run.status) for run in self._followed.values() if run.status)
        yield from self._teller.tell(self._nodes(runs), self._now())

    def _news(self, run: _Followed) -> Iterator[Seen]:
        if not run.has_ended and is_orphaned(run.directory):
            log.warning("the supervisor of run %s was killed; ending what it left", run.order.name)
            reap(run.directory)
        yield from self._state(run)
        if not run.log_closed:
            yield from self._log(run)

    def _state(self, run: _Followed) -> Iterator[Seen]:
        stamp = _stamp(run.directory)
        is_removed = stamp is None and run.stamp is not None
        if run.was_told and (stamp == run.stamp or is_removed):
            return
        status = run.directory.status()
        run.stamp, run.was_told, run.status = stamp, True, status
        run.has_ended = status is not None and status.phase is Phase.ENDED
        yield seen(run.order, status, self._now())

    def _log(self, run: _Followed) -> Iterator[Seen]:
        if run.offset is None:
            resume = self._resume(run_key(run.order), run.source)
            run.offset, run.log_closed = int(resume.cursor or 0), resume.closed
        final = run.has_ended
        while not run.log_closed:
            found = read_lines(run.directory.head_log, run.offset, final=final)
            run.offset = found.offset
            run.log_closed = final and found.at_end
            if found.lines or run.log_closed:
                yield self._log_seen(run, found)
            if found.at_end:
                return

    def _log_seen(self, run: _Followed, found: Lines) -> LogSeen:
        last = len(found.lines) - 1
        return LogSeen(
            run=run_key(run.order),
            source=run.source,
            lines=tuple(
                RawLine(line, goes_on=found.goes_on and index == last) for index, line in enumerate(found.lines)
            ),
            cursor=str(run.offset),
            pod=head_pod(run.order),
            container=CONTAINER,
            closed=run.log_closed,
        )


def _stamp(directory: RunDir) -> tuple[int, int] | None:
    try:
        found = directory.status_file.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns
