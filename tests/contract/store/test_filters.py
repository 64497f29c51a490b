"""Filters of the store against the same filters written down in Python."""

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from starforge.adapters.store import SqlStore
from starforge.domain.changes import Changes
from starforge.domain.job import Actor, ActorKind, Job, JobOutcome, JobState, StateSpan
from starforge.domain.names import Digest, JobId, RunKey
from starforge.domain.observation import PodPhase
from starforge.domain.queries import EventFilter, JobFilter, JobOrder, LabelOperator, LabelSelector, Window
from starforge.domain.reason import ObjectRef, ReasonCode, reason
from starforge.domain.spec import Label
from starforge.domain.timeline import Detail, Entry, EventType, FleetChanged, KubernetesSeen, PodChanged, Severity
from tests.contract.store.examples import AT, STARTED, a_job, a_spec, after, an_entry, save

FEW = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
NAMES = ("train", "Train", "train%", "tr_in", "trainé", "\U0010ffff", "\U0010ffff\U0010ffffa", "\ud7ffx", "\ue000")
IDS = tuple(JobId(f"job-{number:04}") for number in range(30))
TIMES = tuple(after(seconds) for seconds in range(-1, 5))
PROJECTS, FLEETS, SERIES, USERS = ("vision", "audio"), ("home", "away"), ("h200", "a100", "b200"), ("ann", "bob")
CODES = (Digest("c1"), Digest("c2"))
KEYS = ("k1", "k2")
REASONS = (ReasonCode.OOM_KILLED, ReasonCode.CANCELED)


def some_jobs() -> list[Job]:
    seed = random.Random(11)
    return [some_job(number, seed) for number in range(30)]


def some_job(number: int, seed: random.Random) -> Job:
    labels = tuple(Label(key, seed.choice("xy")) for key in ("team", "run") if seed.random() < 0.6)
    spec = a_spec(
        seed.choice(NAMES), project=seed.choice(PROJECTS), fleet=seed.choice((*FLEETS, None)), labels=labels,
        series=tuple(seed.sample(SERIES, seed.randint(1, 2))),
    )  # fmt: skip
    job = a_job(number, spec, at=after(seed.randint(0, 3)), by=Actor(seed.choice(USERS), ActorKind.USER))
    why = seed.choice((None, *REASONS))
    attempt = replace(
        job.attempt,
        spans=(StateSpan(seed.choice(list(JobState)), AT),),
        outcome=seed.choice((None, *JobOutcome)),
        reason=reason(why, "Why.", AT) if why else None,
        ended_at=seed.choice((None, after(1), after(2))),
    )
    return replace(job, attempt=attempt, code=seed.choice((None, *CODES)), idempotency_key=seed.choice((None, *KEYS)))


def some_of(values: tuple[object, ...]) -> st.SearchStrategy[tuple[object, ...] | None]:
    return st.none() | st.lists(st.sampled_from(values), max_size=3).map(tuple)


SELECTORS = st.builds(
    LabelSelector, st.sampled_from(("team", "run", "none")), st.sampled_from(LabelOperator),
    st.lists(st.sampled_from("xyz"), max_size=2).map(tuple),
)  # fmt: skip
PREFIXES = st.none() | st.sampled_from(("", "t", "tr", "T", "train%", "tr_", "\U0010ffff", "\ud7ff", "zz"))
MOMENTS = st.none() | st.sampled_from(TIMES)
JOB_FILTERS = st.builds(
    JobFilter, ids=some_of(IDS), states=some_of(tuple(JobState)), active=st.none() | st.booleans(),
    outcomes=some_of(tuple(JobOutcome)), reasons=some_of(REASONS), projects=some_of(PROJECTS), fleets=some_of(FLEETS),
    series=some_of(SERIES), labels=st.lists(SELECTORS, max_size=2).map(tuple), name_prefix=PREFIXES,
    created_by=some_of(USERS), created_after=MOMENTS, created_before=MOMENTS, ended_after=MOMENTS, ended_before=MOMENTS,
    idempotency_keys=some_of(KEYS), code=st.none() | st.sampled_from(CODES),
)  # fmt: skip
# Few fields at a time, else hardly anything matches.
BLANK = JobFilter()
SPARSE = st.tuples(JOB_FILTERS, st.sets(st.sampled_from(sorted(vars(BLANK))), max_size=2)).map(
    lambda drawn: replace(BLANK, **{name: getattr(drawn[0], name) for name in drawn[1]})
)


def matches(job: Job, which: JobFilter) -> bool:
    attempt, spec = job.attempt, job.spec
    among = (
        (which.ids, job.id), (which.states, job.state), (which.outcomes, attempt.outcome),
        (which.reasons, attempt.reason and attempt.reason.code), (which.projects, spec.project),
        (which.fleets, spec.fleet), (which.created_by, job.created_by.name),
        (which.idempotency_keys, job.idempotency_key), (which.code and (which.code,), job.code),
        (which.active if which.active is None else (which.active,), not job.ended),
    )  # fmt: skip
    bounds = (
        (job.created_at, which.created_after, which.created_before),
        (attempt.ended_at, which.ended_after, which.ended_before),
    )
    return (
        all(allowed is None or value in allowed for allowed, value in among)
        and all(low is None or (at is not None and at >= low) for at, low, _ in bounds)
        and all(end is None or (at is not None and at < end) for at, _, end in bounds)
        and (which.series is None or any(pool.series in which.series for pool in spec.pools))
        and spec.name.startswith(which.name_prefix or "")
        and all(selected(job, selector) for selector in which.labels)
    )


def selected(job: Job, selector: LabelSelector) -> bool:
    values = [label.value for label in job.spec.labels if label.key == selector.key]
    among = any(value in selector.values for value in values)
    return {
        LabelOperator.IN: among,
        LabelOperator.NOT_IN: not among,
        LabelOperator.EXISTS: bool(values),
        LabelOperator.DOES_NOT_EXIST: not values,
    }[selector.operator]


@pytest.fixture
def jobs(store: SqlStore) -> list[Job]:
    jobs = some_jobs()
    save(store, *jobs)
    return jobs


@FEW
@given(which=SPARSE)
def test_jobs(store: SqlStore, jobs: list[Job], which: JobFilter) -> None:
    expected = {job.id for job in jobs if matches(job, which)}
    found = store.job_page(which, JobOrder(), Window(99))
    assert [job.id for _, job in found.rows if job.id not in expected] == []
    assert len(found.rows) == len(expected) == store.job_count(which, at_most=99)
    assert store.job_count(which, at_most=3) == min(3, len(expected))


def some_entries(jobs: list[Job]) -> list[Entry]:
    seed = random.Random(5)
    return [some_entry(number, seed.choice([*jobs, None]), seed) for number in range(60)]


def some_entry(number: int, job: Job | None, seed: random.Random) -> Entry:
    why = seed.choice(("Failed", "Pulled"))
    seen = KubernetesSeen(why, seed.random() < 0.5, ObjectRef("Pod", "p"))
    details: list[Detail] = [STARTED, PodChanged("u", PodPhase.FAILED), FleetChanged(None), seen]
    run = RunKey(job.id, seed.randint(1, 2)) if job else None
    entry = an_entry(f"e{number}", run, seed.choice(details), severity=seed.choice(list(Severity)))
    fleet = seed.choice(FLEETS) if job is None else None
    return replace(entry, fleet=fleet, first_at=after(seed.randint(0, 2)), last_at=after(seed.randint(2, 4)))


EVENT_FILTERS = st.builds(
    EventFilter, jobs=some_of(IDS), types=some_of(tuple(EventType)), min_severity=st.none() | st.sampled_from(Severity),
    projects=some_of(PROJECTS), fleets=some_of(FLEETS), attempt=st.none() | st.integers(1, 3),
    kubernetes_reasons=some_of(("Failed", "Pulled", "Other")), since=MOMENTS, until=MOMENTS,
)  # fmt: skip
ANY_EVENT = EventFilter()
SPARSE_EVENTS = st.tuples(EVENT_FILTERS, st.sets(st.sampled_from(sorted(vars(ANY_EVENT))), max_size=2)).map(
    lambda drawn: replace(ANY_EVENT, **{name: getattr(drawn[0], name) for name in drawn[1]})
)


def tells(entry: Entry, job: Job | None, which: EventFilter) -> bool:
    seen = entry.detail.reason if isinstance(entry.detail, KubernetesSeen) else None
    among: tuple[tuple[tuple[object, ...] | None, object], ...] = (
        (which.jobs, job and job.id), (which.types, entry.type), (which.projects, job and job.spec.project),
        (which.fleets, entry.fleet or (job and job.spec.fleet)), (which.kubernetes_reasons, seen),
        (None if which.attempt is None else (which.attempt,), entry.run and entry.run.attempt),
    )  # fmt: skip
    ranks = list(Severity)
    return (
        all(allowed is None or value in allowed for allowed, value in among)
        and (which.min_severity is None or ranks.index(entry.severity) >= ranks.index(which.min_severity))
        and (which.since is None or entry.last_at >= which.since)
        and (which.until is None or entry.first_at < which.until)
    )


@FEW
@given(which=SPARSE_EVENTS)
def test_entries(store: SqlStore, which: EventFilter) -> None:
    jobs = {job.id: job for job in some_jobs()}
    entries = some_entries(list(jobs.values()))
    if store.feed_bounds() == (0, 0):
        save(store, *jobs.values())
        store.commit(Changes(entries=entries), at=AT)
    found = store.entry_page(which, Window(99)).rows
    expected = [entry for entry in entries if tells(entry, jobs.get(entry.run.job) if entry.run else None, which)]
    assert [entry for _, entry in found] == expected
