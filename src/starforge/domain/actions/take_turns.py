"""Whose turn it is: which jobs of the queue get their RayJob now, and what the others are told."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from starforge.domain.actions.apply import apply, command
from starforge.domain.capacity.fit import UNKNOWN_AFTER
from starforge.domain.capacity.nodes import FleetNodes
from starforge.domain.capacity.packing import Machines, machines_of
from starforge.domain.capacity.queueing import Turn, Waiting, decide
from starforge.domain.capacity.view import HeldGpus
from starforge.domain.capacity.waiting import placed
from starforge.domain.changes import Changes, Watcher
from starforge.domain.deadlines import RUNS, ClockKind
from starforge.domain.errors import StaleRevision
from starforge.domain.job import Job, JobState
from starforge.domain.names import JobId
from starforge.domain.observation import FleetHeard, Seen
from starforge.domain.ports import Ports
from starforge.domain.queries import JobFilter, JobOrder, JobOrderField, Window
from starforge.domain.queue import Queueing, QueuePlace
from starforge.domain.reason import ReasonCode, keep_since, reason
from starforge.domain.telling import write
from starforge.domain.timeline import CommandKind

TOLD_EVERY = timedelta(seconds=2)
"""How often the places of those that wait on are told anew: each is a row, and all of them may change with each."""
CONSIDERED = 500
AT_ONCE = 100
_PAGE = 1000
_LIVE = (JobState.SUBMITTED, JobState.PACKAGING, JobState.LAUNCHING, JobState.PENDING, JobState.RUNNING)


@dataclass
class Turns:
    """One for each time that a process observes a fleet. All is written under the lease of `watcher`, so nobody else
    decides at the same time. Nothing is read while the feed stands still."""

    ports: Ports
    watcher: Watcher | None = None
    _heard_since: datetime | None = None
    _other_queue: str | None = None
    _decided_at: int | None = None
    _told_at: datetime | None = None
    _owes: bool = field(default=False)

    def hear(self, batch: Sequence[Seen]) -> None:
        """Note how well the fleet is heard, and whether another queue decides there."""
        for heard in (seen for seen in batch if isinstance(seen, FleetHeard)):
            self._heard_since = None if heard.problem else self._heard_since or heard.at
            if heard.problem is None and heard.other_queue != self._other_queue:
                self._other_queue, self._decided_at = heard.other_queue, None

    def take(self) -> None:
        """Decide about everything that queues, if anything has changed. StoreUnavailable, Superseded."""
        now = self.ports.now()
        head = self.ports.store.feed_bounds()[1]
        tells = self._told_at is None or now - self._told_at >= TOLD_EVERY
        if head == self._decided_at and not (self._owes and tells):
            return
        try:
            self._owes = self._decide(now, tells=tells)
            self._decided_at = head
        except StaleRevision:
            self._decided_at = None  # somebody changed a job, for example canceled it: look again

    def _decide(self, now: datetime, *, tells: bool) -> bool:
        """Whether to look again though nothing changes: places are not told yet, or the fleet is not heard."""
        queued = [job for job in self._jobs((JobState.SUBMITTED,)) if job.queues]
        if not queued:
            return False
        turns = {turn.job: turn for turn in self._turns(queued, now)}
        went = [(job, turns[job.id]) for job in queued if turns[job.id].admitted]
        wait = [(job, turns[job.id]) for job in queued if not turns[job.id].admitted]
        new = [(job, turn) for job, turn in wait if job.attempt.queue and job.attempt.queue.position is None]
        self._write([*went, *(wait if tells else new)], now)
        if tells:
            self._told_at = now
        unknown = [turn for _, turn in wait if turn.unknown]
        return bool(unknown) or (not tells and len(new) < len(wait))

    def _turns(self, queued: Sequence[Job], now: datetime) -> Sequence[Turn]:
        why = self._why_none_waits()
        free = [job for job in queued if why or job.spec.queue]
        gone = [Turn(job.id, True, None, None, None, why or _elsewhere(job.spec.queue)) for job in free]
        waits = sorted((job for job in queued if not (why or job.spec.queue)), key=_order)
        nodes = self.ports.store.fleet_nodes(self.ports.fleet.name)
        if waits and nodes is None and self._is_blind(now):
            blind = "The nodes of the fleet can't be seen, so it does not wait until it fits."
            return [*gone, *(Turn(job.id, True, None, None, None, blind) for job in waits)]
        front, behind = waits[:CONSIDERED], waits[CONSIDERED:]
        decided = self._decided(front, nodes, now) if front else ()
        return [*gone, *decided, *_behind(behind, decided, front)]

    def _why_none_waits(self) -> str | None:
        if self.ports.queueing is Queueing.OFF:
            return "Jobs do not queue here."
        other = self._other_queue if self.ports.queueing is Queueing.AUTO else None
        return f"{other} decides in this cluster which jobs begin when." if other else None

    def _is_blind(self, now: datetime) -> bool:
        """Whether the fleet is heard and does not tell of nodes, for example as we may not see them."""
        return self._heard_since is not None and now - self._heard_since >= UNKNOWN_AFTER

    def _decided(self, waits: Sequence[Job], nodes: FleetNodes | None, now: datetime) -> Sequence[Turn]:
        others = [job for job in self._jobs(_LIVE) if not job.queues and not job.spec.queue and not job.decided]
        return decide(
            [
                Waiting(job.id, job.spec.name, machines_of(job.spec), job.spec.priority, job.attempt.created_at)
                for job in waits
            ],
            reserved=list(reserved(others, nodes)),
            nodes=nodes,
            fleet=self.ports.fleet.name,
            until=until(others),
            at=now,
        )

    def _jobs(self, states: tuple[JobState, ...]) -> list[Job]:
        """All jobs in these states, each read again only if it has changed."""
        which, after, found = JobFilter(states=states), None, list[Job]()
        while True:
            page = self.ports.store.job_page(which, _OLDEST, Window(_PAGE, after=after))
            found += [job for _, job in page.rows]
            if not page.has_next:
                return found
            after = page.rows[-1][0]

    def _write(self, turns: Sequence[tuple[Job, Turn]], now: datetime) -> None:
        changed = [(job, turn) for job, turn in turns if _differs(job, turn)]
        for start in range(0, len(changed), AT_ONCE):
            changes = Changes(watcher=self.watcher)
            for job, turn in changed[start : start + AT_ONCE]:
                write(changes, job, _told(job, turn, now), now, self.ports.random)
                if turn.admitted:
                    changes.commands.append(command(self.ports, CommandKind.PACKAGE, job))
            apply(self.ports, changes)


_OLDEST = JobOrder(JobOrderField.CREATED_AT, descending=False)


def _order(job: Job) -> tuple[int, datetime, JobId]:
    return -job.spec.priority, job.attempt.created_at, job.id


def _elsewhere(queue: str | None) -> str:
    return f"It waits for its turn in queue {queue} of the cluster."


def _behind(behind: Sequence[Job], decided: Sequence[Turn], front: Sequence[Job]) -> Iterator[Turn]:
    """Places of those that are too far behind to be considered."""
    admitted = {turn.job for turn in decided if turn.admitted}
    gpus = sum(job.spec.gpus for job in front if job.id not in admitted)
    position = len(front) - len(admitted)
    said = f"The first {CONSIDERED} jobs of the queue are considered; it is not among them yet."
    for job in behind:
        position += 1
        yield Turn(job.id, False, position, gpus, None, said)
        gpus += job.spec.gpus


def reserved(jobs: Sequence[Job], nodes: FleetNodes | None) -> Iterator[Machines]:
    """Machines of jobs that had their turn and that have no Pod on a node yet."""
    there = placed(nodes.views if nodes else ())
    for job in jobs:
        for machines in machines_of(job.spec):
            missing = machines.count - there.get((job.run, machines.pool), 0)
            if missing > 0:
                yield replace(machines, count=missing, job=job.id)


def until(jobs: Sequence[Job]) -> Callable[[HeldGpus], datetime | None]:
    """When whoever holds GPUs must have ended: a job by its active clock."""
    due = {job.run: clock.due_at for job in jobs for clock in job.attempt.clocks if _ends(clock.kind, clock.state)}
    return lambda held: due.get(held.run) if held.run else None


def _ends(kind: ClockKind, state: object) -> bool:
    return kind is ClockKind.ACTIVE and state in RUNS


def _differs(job: Job, turn: Turn) -> bool:
    place = job.attempt.queue
    return turn.admitted or place is None or _place(turn, place.decided_at) != place


def _place(turn: Turn, at: datetime) -> QueuePlace:
    admitted_at = at if turn.admitted else None
    return QueuePlace(turn.decision, at, turn.position, turn.gpus_ahead, turn.estimated_start_at, admitted_at)


def _told(job: Job, turn: Turn, at: datetime) -> Job:
    why = None if turn.admitted else keep_since(reason(ReasonCode.QUEUED, turn.decision, at), job.attempt.reason)
    return job.with_attempt(replace(job.attempt, queue=_place(turn, at), reason=why))
