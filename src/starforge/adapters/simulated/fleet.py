"""The simulated fleet: a busy cluster that does not exist, for tests and for people who build dashboards."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from starforge.adapters.simulated import picture as pictures
from starforge.adapters.simulated.book import Book
from starforge.adapters.simulated.nodes import node_views
from starforge.adapters.simulated.plan import check
from starforge.adapters.simulated.record import Record, Stop
from starforge.adapters.simulated.timeline import Timeline, timeline
from starforge.adapters.simulated.watch import ResumeAt, Watcher
from starforge.adapters.simulated.world import World
from starforge.domain.capacity.telling import NodeTeller
from starforge.domain.errors import FleetUnavailable
from starforge.domain.health import Access, Finding, FleetProbe, HealthCheckKind, HealthStatus
from starforge.domain.job import RunIdentity
from starforge.domain.names import RunKey
from starforge.domain.observation import FleetHeard, RunPhase, RunSeen, Seen
from starforge.domain.ports import FleetKind, LaunchOrder, StopAnswer
from starforge.domain.spec import FleetDefaults, JobSpec
from starforge.domain.teardown import Found, RemainingObject

NODES_EVERY = timedelta(seconds=1)


class SimulatedFleet:
    """A Fleet whose runs follow a seeded timeline.

    Fleets with the same `state` file and an equal world are one, in whichever processes they are. `poll_s` is how often
    the watch looks, in seconds of real time; `clock` gives aware times.
    """

    kind = FleetKind.SIMULATED

    def __init__(
        self,
        *,
        defaults: FleetDefaults,
        state: Path,
        clock: Callable[[], datetime],
        world: World | None = None,
        poll_s: float = 0.25,
    ) -> None:
        self.name = defaults.fleet
        self._defaults, self._clock, self._poll_s = defaults, clock, poll_s
        self._world = world or World()
        self._book = Book(state, self._world, clock)

    def defaults(self) -> FleetDefaults:
        return self._defaults

    def signature_seconds(self, spec: JobSpec) -> float | None:
        return None

    def launch(self, order: LaunchOrder) -> RunIdentity:
        """Begin the life of a run. One that was launched before keeps the life it has, also when that is over."""
        with self._book.open() as page:
            record = page.get(order.run)
            if record is None:
                check(self._world, order.run, order.spec, page.now)
                record = Record(order.run, order.name, order.nonce, order.spec, page.now)
                page.put(record)
                page.forget_old()
        return RunIdentity(record.name, self._world.namespace, pictures.run_uid(self._life(record)))

    def stop(self, run: RunKey, *, grace_s: int) -> StopAnswer:
        with self._book.open() as page:
            record = page.get(run)
            if record is None or not self._runs(record, page.now):
                return StopAnswer.NOBODY_TO_ASK
            kill_at = page.now + timedelta(seconds=grace_s)
            asked = record.stop or Stop(page.now, kill_at)
            page.put(replace(record, stop=replace(asked, kill_at=min(asked.kill_at, kill_at))))
        return StopAnswer.ASKED

    def delete(self, run: RunKey) -> None:
        with self._book.open() as page:
            record = page.get(run)
            if record is not None and record.deleted_at is None:
                page.put(replace(record, deleted_at=page.now))

    def remaining(self, run: RunKey) -> Sequence[RemainingObject]:
        with self._book.open() as page:
            record, now = page.get(run), page.now
        return () if record is None else pictures.remaining(self._life(record), now)

    def ours(self, installation: str) -> Sequence[Found]:  # the book is one installation's alone
        with self._book.open() as page:
            records, now = page.there(page.now), page.now
        return [
            Found(record.run, left, record.launched_at)
            for record in records
            for left in pictures.remaining(self._life(record), now)
        ]

    def look(self, run: RunKey) -> RunSeen:
        with self._book.open() as page:
            record, now = page.get(run), page.now
        return RunSeen(run, RunPhase.ABSENT, now) if record is None else pictures.picture(self._life(record), now)

    def health(self, asked: Access | None = None) -> FleetProbe:
        """Whether the file that it is made of can be used."""
        try:
            with self._book.open():
                return FleetProbe((Finding(HealthCheckKind.STORAGE),))
        except FleetUnavailable as problem:
            return FleetProbe((Finding(HealthCheckKind.STORAGE, HealthStatus.DOWN, problem.message),))

    def watch(self, resume: ResumeAt, stop: threading.Event) -> Iterator[Seen]:
        watcher: Watcher | None = None
        teller, look_at = NodeTeller(), self._clock()
        while not stop.is_set():
            try:
                with self._book.open() as page:
                    watcher = watcher or Watcher(self._world, resume, page.now)
                    records, now = page.there(watcher.since), page.now
            except FleetUnavailable as problem:
                yield FleetHeard(self._clock(), problem.message)
            else:
                yield FleetHeard(now)
                yield from watcher.advance(records, now)
                if now >= look_at:
                    look_at = now + NODES_EVERY
                    yield from teller.tell(node_views(self._world, records, now), now)
            stop.wait(self._poll_s)

    def _life(self, record: Record) -> Timeline:
        return timeline(self._world, record)

    def _runs(self, record: Record, now: datetime) -> bool:
        life = self._life(record)
        return life.started_at is not None and life.started_at <= now and (life.end is None or now < life.end.at)
