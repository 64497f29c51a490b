"""submitJobs: up to a hundred jobs in one transaction, with one outcome for each; needs nothing but the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from starforge.domain.actions.apply import GUARD_TRIES, apply
from starforge.domain.actions.submit import (
    Checked,
    Submission,
    SubmitStatus,
    add_job,
    checked,
    demand_a_place,
    other_body,
)
from starforge.domain.capacity.nodes import FleetNodes
from starforge.domain.changes import Changes, IdempotencyRecord
from starforge.domain.errors import Problem, SpecRefused, StaleRevision, UserMistake
from starforge.domain.job import Actor, Job
from starforge.domain.names import JobId
from starforge.domain.ports import Ports

MUTATION = "submitJobs"
BATCH_MAX = 100
Key = tuple[str, str]


class BatchErrorPolicy(StrEnum):
    INDEPENDENT = "INDEPENDENT"
    ALL_OR_NOTHING = "ALL_OR_NOTHING"


@dataclass(frozen=True)
class ItemOutcome:
    """What became of one item: its job, or what is wrong with it."""

    status: SubmitStatus
    job: Job | None = None
    mistake: UserMistake | None = None


@dataclass
class _Plan:
    """What a batch would do, as the database is now: per item an outcome, or the id of the job that it gets."""

    nodes: FleetNodes | None
    changes: Changes = field(default_factory=Changes)
    items: list[ItemOutcome | tuple[SubmitStatus, JobId]] = field(default_factory=list)
    taken: dict[Key, IdempotencyRecord] = field(default_factory=dict)

    @property
    def refuses(self) -> bool:
        return any(isinstance(item, ItemOutcome) for item in self.items)


def submit_many(
    ports: Ports, items: Sequence[Submission | UserMistake], by: Actor, policy: BatchErrorPolicy
) -> list[ItemOutcome]:
    """One outcome per item, in order; an item that was refused already is given as its mistake.

    UserMistake if there are none or more than BATCH_MAX; StaleRevision, and nothing is made, if others used the same
    keys again and again meanwhile.
    """
    _check_size(items)
    ready = _all_checked(ports, items)
    for _ in range(GUARD_TRIES):
        plan = _planned(ports, ready, by)
        if policy is BatchErrorPolicy.ALL_OR_NOTHING and plan.refuses:
            return _done(ports, plan, made=False)
        try:
            if not plan.changes.empty:
                apply(ports, plan.changes)
        except StaleRevision:
            continue  # a key was used by somebody else meanwhile: then the next plan finds its job
        return _done(ports, plan, made=True)
    raise StaleRevision("Others used the same idempotency keys all the time; send the batch again.")


def _check_size(items: Sequence[object]) -> None:
    if not 1 <= len(items) <= BATCH_MAX:
        message = f"A batch has 1 to {BATCH_MAX} items, and this one has {len(items)}."
        raise SpecRefused([Problem("OUT_OF_RANGE", ("items",), message)])


def _all_checked(ports: Ports, items: Sequence[Submission | UserMistake]) -> list[Checked | UserMistake]:
    defaults = ports.fleet.defaults()
    digests = {item.code for item in items if isinstance(item, Submission) and isinstance(item.code, str)}
    known = ports.store.known_code(sorted(digests)) if digests else frozenset()
    ready: list[Checked | UserMistake] = []
    for item in items:
        try:
            ready.append(item if isinstance(item, UserMistake) else checked(item, defaults, known))
        except UserMistake as mistake:
            ready.append(mistake)
    return ready


def _planned(ports: Ports, ready: Sequence[Checked | UserMistake], by: Actor) -> _Plan:
    keys = sorted({key for one in ready if isinstance(one, Checked) and (key := _key(one))})
    taken = dict(ports.store.idempotencies(MUTATION, keys)) if keys else {}
    plan = _Plan(ports.store.fleet_nodes(ports.fleet.name), taken=taken)
    for one in ready:
        try:
            if isinstance(one, UserMistake):
                raise one
            _plan_one(ports, plan, one, by)
        except UserMistake as mistake:
            plan.items.append(ItemOutcome(SubmitStatus.REFUSED, mistake=mistake))
    return plan


def _key(one: Checked) -> Key | None:
    return (one.spec.project, one.what.idempotency_key) if one.what.idempotency_key else None


def _plan_one(ports: Ports, plan: _Plan, one: Checked, by: Actor) -> None:
    key = _key(one)
    record = plan.taken.get(key) if key else None
    if record is None:
        demand_a_place(ports, one, plan.nodes)
        job = add_job(ports, plan.changes, one, by, MUTATION)
        if key:  # so that the same key in a later item means this job
            plan.taken[key] = plan.changes.idempotency[-1]
        plan.items.append((SubmitStatus.CREATED, job.id))
    elif record.body_sha256 == one.body:
        plan.items.append((SubmitStatus.REPLAYED, record.job))
    else:
        raise other_body(record)


def _done(ports: Ports, plan: _Plan, *, made: bool) -> list[ItemOutcome]:
    jobs = ports.store.jobs_by_id(sorted({item[1] for item in plan.items if isinstance(item, tuple)}))
    return [item if isinstance(item, ItemOutcome) else _outcome(*item, jobs, made=made) for item in plan.items]


def _outcome(status: SubmitStatus, job: JobId, jobs: Mapping[JobId, Job], *, made: bool) -> ItemOutcome:
    """A job that is not there was only planned."""
    if not made and job not in jobs:
        return ItemOutcome(SubmitStatus.NOT_DONE)
    return ItemOutcome(status, jobs[job])
