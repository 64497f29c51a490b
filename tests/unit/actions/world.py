"""A whole installation for one test: the real store on a file of its own, and fakes around it."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from starforge.adapters.store import SqlStore
from starforge.domain.actions.enforce_deadlines import enforce_deadlines
from starforge.domain.actions.observe import Observer
from starforge.domain.actions.perform import LEASE_S, perform
from starforge.domain.actions.submit import Submission, submit
from starforge.domain.capacity.nodes import NodesSeen, NodeView, Room
from starforge.domain.capsule import InlineFile
from starforge.domain.changes import Changes, Lease, NodesWrite
from starforge.domain.health import ObserverHeard
from starforge.domain.job import Actor, ActorKind, Job, JobState
from starforge.domain.logs import DRIVER, LogLine, LogSource
from starforge.domain.names import CommandId, JobId, RunKey
from starforge.domain.observation import (
    LogSeen,
    PodPhase,
    PodRole,
    PodRuntime,
    PodView,
    RawLine,
    RunPhase,
    RunSeen,
    Seen,
)
from starforge.domain.ports import Ports
from starforge.domain.queries import EventFilter, FeedRow, LogRange, Window
from starforge.domain.spec import DeadlinesDraft, PoolDraft, SpecDraft
from starforge.domain.timeline import Entry, StateChanged
from tests.unit.actions.fakes import (
    START,
    FakeFleet,
    FakeObjects,
    FakePacker,
    Faults,
    FaultyStore,
    HandClock,
    Ids,
    as_port,
)

ANN = Actor("ann", ActorKind.USER)
DRAFT = SpecDraft("digits", ("python3", "train.py"), (PoolDraft("train", "h200", 1, 1),))
FILES = (InlineFile("train.py", "print(1)\n"),)
HEAD_LOG = "pod/head/ray-head"


class World:
    def __init__(self, directory: Path, store: SqlStore) -> None:
        self.scratch_root, self.sql = directory, store
        self.clock, self.ids, self.faults = HandClock(), Ids(), Faults()
        self.store = FaultyStore(self.sql, self.faults)
        self.fleet = FakeFleet(self.faults, self.clock)
        self.objects = FakeObjects(self.faults, self.clock)
        self.packer = FakePacker()
        self.nudged: list[CommandId] = []
        self.published: list[FeedRow] = []
        self.ports = Ports(
            store=as_port(self.store),
            fleet=as_port(self.fleet),
            objects=as_port(self.objects),
            packer=self.packer,
            nudge=self._nudge,
            publish=self._publish,
            now=self.clock,
            random=self.ids,
            scratch=self._scratch,
        )
        self.observer = Observer(self.ports)
        self._cursor = 0

    def _nudge(self, commands: Sequence[CommandId]) -> None:
        self.nudged.extend(commands)

    def _publish(self, rows: Sequence[FeedRow]) -> None:
        self.published.extend(rows)

    @contextmanager
    def _scratch(self) -> Iterator[Path]:
        with TemporaryDirectory(dir=self.scratch_root) as path:
            yield Path(path)

    # --- what people and workers do -----------------------------------------------------------------------------------

    def submit(self, draft: SpecDraft = DRAFT, **rest: Any) -> JobId:
        return submit(self.ports, Submission(draft, rest.pop("code", FILES), **rest), ANN).job.id

    def take(self, command: CommandId, *, by: str = "me") -> Lease:
        lease = self.sql.take(command, token=by, at=self.clock(), lease_s=LEASE_S)
        assert lease is not None
        return lease

    def due(self) -> Sequence[CommandId]:
        return self.sql.due(at=self.clock(), limit=100)

    def work(self) -> None:
        """Do what is due right now, and what follows from it at once."""
        for _ in range(50):
            if not sum(perform(self.ports, command) for command in self.due()):
                return
        raise AssertionError("commands are due for ever")

    def settle(self, seconds: float = 400) -> None:
        """Let workers and beat go on for a time."""
        until = self.clock() + timedelta(seconds=seconds)
        while self.clock() < until:
            self.work()
            enforce_deadlines(self.ports)
            self.observer.tick()
            self.clock.forward(1)

    # --- jobs in a state ----------------------------------------------------------------------------------------------

    def pending(self, draft: SpecDraft = DRAFT) -> JobId:
        job = self.submit(draft)
        self.work()
        assert self.job(job).state is JobState.PENDING
        return job

    def running(self, draft: SpecDraft = DRAFT) -> JobId:
        job = self.pending(draft)
        self.see(job, RunPhase.RUNNING, head())
        assert self.job(job).state is JobState.RUNNING
        return job

    def finishing(self) -> JobId:
        """A job whose command ended well, with the log closed by its exit line."""
        job = self.running()
        self.say(job, "hello", self.exit(job, 0))
        self.see(job, RunPhase.SUCCEEDED, head())
        assert self.job(job).state is JobState.FINISHING
        return job

    # --- what the fleet tells -----------------------------------------------------------------------------------------

    def see(self, job: JobId, phase: RunPhase, *pods: PodView, **rest: Any) -> None:
        self.observer.observe([self.picture(job, phase, *pods, **rest)])

    def picture(self, job: JobId, phase: RunPhase, *pods: PodView, **rest: Any) -> RunSeen:
        return RunSeen(self.run(job), phase, self.clock(), tuple(pods), **rest)

    def say(self, job: JobId, *texts: str, source: str = HEAD_LOG) -> None:
        self.observer.observe([self.lines(job, *texts, source=source)])

    def lines(self, job: JobId, *texts: str, source: str = HEAD_LOG, closed: bool = False) -> LogSeen:
        """The next lines of a container's log; each text is one line that the user's command printed."""
        self._cursor += 1
        raw = tuple(self.frame(text) for text in texts)
        return LogSeen(self.run(job), source, raw, f"cursor {self._cursor}", "head", "ray-head", closed=closed)

    def frame(self, text: str, *, ends: bool = True) -> RawLine:
        mark = "." if ends else "+"
        line = f"::starforge-out {self.clock().timestamp():.6f} {mark} {text}"
        return RawLine(line.encode(), self.clock())

    def wire(self, job: JobId, **message: Any) -> str:
        nonce = self.fleet.orders[self.run(job)].nonce
        return f"::starforge:: {json.dumps({'nonce': nonce} | message)}"

    def started(self, job: JobId) -> str:
        return self.wire(job, type="started", at=self.clock().timestamp())

    def exit(self, job: JobId, code: int) -> str:
        return self.wire(job, type="exit", code=code, signal=None, at=self.clock().timestamp())

    def refused(self, job: JobId, why: str) -> str:
        return self.wire(job, type="refused", why=why, message="it says so")

    def progress(self, step: int, **metrics: float) -> str:
        return f"::starforge:: {json.dumps({'type': 'progress', 'step': step, 'total': 100, 'metrics': metrics})}"

    def see_node(self, gpus: int, series: str = "h200") -> None:
        """One node with so many GPUs, told by an observer that hears the fleet."""
        self.sql.renew_observer("home", holder="one", at=self.clock(), lease_s=3600)
        self.sql.note_heard("home", holder="one", heard=ObserverHeard(self.clock(), 0.1))
        node = NodeView("node-a", series, gpus, Room(gpus, 64_000, 2**40, 100))
        self.sql.commit(Changes(nodes=[NodesWrite("home", NodesSeen(self.clock(), (node,)))]), at=self.clock())

    # --- what is there ------------------------------------------------------------------------------------------------

    def job(self, job: JobId) -> Job:
        found = self.sql.job(job)
        assert found is not None
        return found

    def run(self, job: JobId) -> RunKey:
        """The current attempt."""
        found = self.sql.job(job)
        return found.run if found else RunKey(job, 1)

    def entries(self, job: JobId) -> list[Entry]:
        return [entry for _, entry in self.sql.entry_page(EventFilter(jobs=(job,)), Window(1000)).rows]

    def states(self, job: JobId) -> list[JobState]:
        """The states that the timeline tells of, in order."""
        details = [entry.detail for entry in self.entries(job)]
        return [detail.after for detail in details if isinstance(detail, StateChanged)]

    def source(self, job: JobId, key: str = DRIVER) -> LogSource | None:
        sources = self.sql.log_sources([self.run(job)]).get(self.run(job), ())
        return next((source for source in sources if source.key == key), None)

    def log(self, job: JobId, key: str = DRIVER) -> list[LogLine]:
        return list(self.sql.log_lines(LogRange(self.run(job), key, 1, 10_000)))

    def feed(self) -> Sequence[FeedRow]:
        return self.sql.feed(after=0, limit=10_000)

    def pods(self, job: JobId) -> Sequence[PodView]:
        return self.sql.pods([self.run(job)]).get(self.run(job), ())


def pod(name: str, role: PodRole = PodRole.WORKER, **rest: Any) -> PodView:
    known: dict[str, Any] = {
        "uid": f"{name}-uid",
        "name": name,
        "namespace": "training",
        "runtime": PodRuntime.KUBERNETES,
        "role": role,
        "pool": "train",
        "machine": 0,
        "phase": PodPhase.RUNNING,
        "created_at": START,
        "observed_at": START,
        "ready": True,
    }
    return PodView(**(known | rest))


def head(**rest: Any) -> PodView:
    return pod("head", PodRole.HEAD, **rest)


def with_limits(queue: int = 0, pre_running: int = 0, active: int = 0) -> SpecDraft:
    return replace(DRAFT, deadlines=DeadlinesDraft(queue, pre_running, active))


__all__ = ["ANN", "DRAFT", "FILES", "HEAD_LOG", "Seen", "World", "head", "pod", "with_limits"]
