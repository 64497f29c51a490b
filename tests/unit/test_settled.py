"""Runs that go on as they did are not taken in again, and nothing else is left out."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from starforge.domain.job import Job, JobOutcome, JobState, advance, finish
from starforge.domain.names import JobId, RunKey
from starforge.domain.news import News, gather
from starforge.domain.observation import (
    EventSeen,
    LogSeen,
    PodPhase,
    PodRole,
    PodRuntime,
    PodView,
    RayJobView,
    RunPhase,
    RunSeen,
    Seen,
)
from starforge.domain.reason import ObjectRef
from starforge.domain.settled import SEEN_BY_NOW, SEEN_EVERY, Settled, confirmed_at, same_picture
from tests.unit.examples import a_job

AT = datetime(2026, 1, 1, tzinfo=UTC)
RUN = RunKey(JobId("job-1"), 1)


def pod(uid: str = "a", **rest: object) -> PodView:
    known = PodView(
        uid, uid, "ns", PodRuntime.KUBERNETES, PodRole.HEAD, "train", 0, PodPhase.RUNNING, AT, AT, ready=True
    )
    return replace(known, **rest)  # type: ignore[arg-type]


def seen(*pods: PodView, phase: RunPhase = RunPhase.RUNNING, at: datetime = AT, **rest: object) -> RunSeen:
    rayjob = RayJobView("try", "ns", "uid", job_status="RUNNING", observed_at=at)
    return replace(RunSeen(RUN, phase, at, pods or (pod(),), rayjob, "uid"), **rest)  # type: ignore[arg-type]


def news(*told: Seen) -> News:
    (one,) = gather(told)
    return one


def settled(first: RunSeen, job: Job | None) -> Settled:
    it = Settled()
    it.note(news(first), job, AT)
    return it


def job_in(state: JobState) -> Job:
    if state is JobState.FINISHING:
        return finish(job_in(JobState.RUNNING), JobOutcome.SUCCEEDED, None, AT)
    return advance(a_job(), state, AT)


@pytest.fixture
def running() -> Job:
    return job_in(JobState.RUNNING)


def later(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def test_the_same_picture_is_covered_for_a_while(running: Job) -> None:
    it = settled(seen(), running)
    assert it.covers(news(seen(at=later(30))), later(30))
    assert it.covers(news(seen(pod(observed_at=later(30)), at=later(30)), seen(at=later(31))), later(31))
    assert not it.covers(news(seen(at=AT + SEEN_EVERY)), AT + SEEN_EVERY)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(seen(pod(restarts=1)), id="a Pod changed"),
        pytest.param(seen(pod(), pod("b")), id="a Pod came"),
        pytest.param(seen(pod(), message="ending"), id="a message"),
        pytest.param(seen(phase=RunPhase.SUCCEEDED), id="a phase"),
        pytest.param(seen(rayjob=RayJobView("try", "ns", "uid", job_status="STOPPED")), id="the RayJob changed"),
    ],
)
def test_whatever_changed_is_news(running: Job, other: RunSeen) -> None:
    it = settled(seen(), running)
    assert not it.covers(news(other), later(1))
    assert not it.covers(news(seen(), other), later(1))


def test_a_pod_that_went_is_news(running: Job) -> None:
    assert not settled(seen(pod(), pod("b")), running).covers(news(seen()), later(1))


def test_events_and_lines_are_always_news(running: Job) -> None:
    it = settled(seen(), running)
    event = EventSeen(RUN, "e", ObjectRef("Pod", "a"), "BackOff", True, "", 1, AT, AT)
    assert not it.covers(news(seen(), event), later(1))
    assert not it.covers(news(LogSeen(RUN, "driver", (), "1")), later(1))


@pytest.mark.parametrize(
    "first",
    [
        seen(pod(ready=False)),
        seen(pod(terminating=True)),
        seen(phase=RunPhase.WAITING),
        seen(phase=RunPhase.FAILED),
    ],
)
def test_what_time_may_change_is_looked_at_each_time(running: Job, first: RunSeen) -> None:
    assert not settled(first, running).covers(news(first), later(1))


@pytest.mark.parametrize("state", [JobState.LAUNCHING, JobState.PENDING, JobState.FINISHING])
def test_so_is_a_job_that_is_on_its_way(state: JobState) -> None:
    assert not settled(seen(), job_in(state)).covers(news(seen()), later(1))


def test_runs_of_nobody_and_what_is_gone() -> None:
    it = settled(seen(), None)
    assert it.covers(news(seen(at=later(1))), later(1))
    gone = RunSeen(RUN, RunPhase.ABSENT, later(2))
    it.note(news(gone), None, later(2))
    assert not it.covers(news(seen()), later(3))


def test_runs_that_were_seen_at_once_are_not_due_at_once() -> None:
    it, runs = Settled(), [RunKey(JobId(f"job-{number}"), 1) for number in range(200)]
    for run in runs:
        it.note(news(seen(run=run)), None, AT)
    ages = [SEEN_EVERY * tenth / 10 for tenth in range(5, 11)]
    covered = [sum(it.covers(news(seen(run=run)), AT + age) for run in runs) for age in ages]
    assert covered[0] == 200
    assert covered[-1] == 0
    assert all(10 < before - after < 90 for before, after in itertools.pairwise(covered))


def test_views_that_are_the_same_objects_are_compared_at_once() -> None:
    pods = tuple(pod(str(number)) for number in range(3))
    assert same_picture(seen(*pods), seen(*pods, at=later(9)))


def test_what_is_as_it_was_is_confirmed_as_long_as_its_fleet_is_heard() -> None:
    attempt = replace(job_in(JobState.RUNNING).attempt, observed_at=AT)
    heard = AT + timedelta(minutes=4)
    assert confirmed_at(attempt, heard) == heard
    assert confirmed_at(attempt, AT - timedelta(seconds=1)) == AT
    assert confirmed_at(attempt, None) == AT
    assert confirmed_at(replace(attempt, observed_at=None), heard) is None
    assert confirmed_at(replace(attempt, stale_since=AT), heard) == AT
    assert confirmed_at(replace(attempt, released_at=AT), heard) == AT
    assert confirmed_at(attempt, AT + SEEN_BY_NOW + timedelta(seconds=1)) == AT
