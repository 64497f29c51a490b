"""Jobs and what belongs to them, and any value of the domain's dataclasses."""

import types
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Literal, NewType, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from starforge.adapters.store import SqlStore
from starforge.domain.changes import Aspect, Changes, Lease, NewCommand
from starforge.domain.job import Actor, ActorKind, Attempt, Job, JobState, new_attempt
from starforge.domain.names import CommandId, JobId, RunKey
from starforge.domain.observation import PodPhase, PodRole, PodRuntime, PodView
from starforge.domain.spec import Deadlines, JobSpec, Label, PoolSpec
from starforge.domain.timeline import CommandKind, Detail, Entry, Severity, StateChanged

AT = datetime(2026, 3, 4, 5, 6, 7, 891011, tzinfo=UTC)
TOKEN = "t"
ME = Actor("ann", ActorKind.USER)
STARTED = StateChanged(JobState.SUBMITTED, None)


def after(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def a_spec(
    name: str = "train", *, project: str = "vision", fleet: str | None = "home", series: tuple[str, ...] = ("h200",),
    labels: tuple[Label, ...] = (), priority: int = 0, gpus: int = 1,
) -> JobSpec:  # fmt: skip
    pools = tuple(PoolSpec(f"pool{n}", s, 1, gpus if n == 0 else 0, 1, "2Gi", "1Gi") for n, s in enumerate(series))
    return JobSpec(
        name=name, project=project, fleet=fleet, description=None, image=None, command=("python3", "train.py"), env=(),
        pools=pools, deadlines=Deadlines(600, 1800, 0), labels=labels, priority=priority, cancel_grace_seconds=30,
    )  # fmt: skip


def a_job(number: int = 1, spec: JobSpec | None = None, *, at: datetime = AT, by: Actor = ME) -> Job:
    spec = spec or a_spec()
    return Job(JobId(f"job-{number:04}"), spec, at, by, at, new_attempt(spec, 1, by, at))


def a_pod(uid: str) -> PodView:
    return PodView(uid, uid, None, PodRuntime.PROCESS, PodRole.HEAD, "pool0", 0, PodPhase.RUNNING, AT, AT)


def an_entry(name: str, run: RunKey | None, detail: Detail = STARTED, *, at: datetime = AT, **rest: Any) -> Entry:
    return Entry(
        name, run, rest.pop("severity", Severity.INFO), rest.pop("message", "It happened."), at, at, detail, **rest
    )


def a_command(name: str, job: Job, kind: CommandKind = CommandKind.PACKAGE, *, due_at: datetime = AT) -> NewCommand:
    return NewCommand(CommandId(name), kind, job.run, due_at)


def save(store: SqlStore, *jobs: Job, commands: tuple[NewCommand, ...] = ()) -> None:
    changes = Changes(commands=list(commands))
    for job in jobs:
        changes.job(job, Aspect.STATE)
    store.commit(changes, at=AT)


def saved(store: SqlStore, number: int = 1) -> Job:
    """A job that is in the store, as it is there."""
    job = a_job(number)
    save(store, job)
    return replace(job, revision=1)


def taken(store: SqlStore, name: str, *, token: str = TOKEN, seconds: float = 0) -> Lease:
    lease = store.take(CommandId(name), token=token, at=after(seconds), lease_s=60)
    assert lease is not None
    return lease


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
_PLAIN: dict[object, st.SearchStrategy[Any]] = {
    str: TEXT,
    bool: st.booleans(),
    int: st.integers(0, 30_000),
    float: st.floats(allow_nan=False, allow_infinity=False),
    datetime: st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)),
    type(None): st.none(),
}


def anything(shape: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that the domain is made of."""
    if shape in _PLAIN:
        return _PLAIN[shape]
    if isinstance(shape, NewType):
        return anything(shape.__supertype__)
    if isinstance(shape, type) and is_dataclass(shape):
        hints = get_type_hints(shape)
        return st.builds(shape, **{field.name: anything(hints[field.name]) for field in fields(shape)})
    if isinstance(shape, type) and issubclass(shape, Enum):
        return st.sampled_from(shape)
    return _composed(get_origin(shape), get_args(shape))


def _composed(origin: Any, arguments: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, types.UnionType):
        return st.one_of(*map(anything, arguments))
    assert (origin, arguments[1:]) == (tuple, (...,))
    return st.lists(anything(arguments[0]), max_size=2).map(tuple)


def any_attempt() -> st.SearchStrategy[Attempt]:
    """An attempt has always been in some state."""
    return anything(Attempt).filter(lambda attempt: bool(attempt.spans))
