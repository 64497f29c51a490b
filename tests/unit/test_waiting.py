"""Which machines wait for a node, and what is said of them."""

from dataclasses import replace
from datetime import timedelta

import pytest

from starforge.domain.capacity.nodes import Claim, NodeView, Room
from starforge.domain.capacity.waiting import demands, placed
from starforge.domain.job import Actor, ActorKind, Job, JobState, advance, new_attempt
from starforge.domain.names import JobId, RunKey
from starforge.domain.reason import ReasonCode, reason
from starforge.domain.spec import PoolDraft, SpecDraft
from starforge.domain.spec_rules import freeze
from tests.unit.actions.fakes import DEFAULTS, START

ANN = Actor("ann", ActorKind.USER)
POOLS = (PoolDraft("train", "h200", 2, 4), PoolDraft("judge", "b200", 1, 1), PoolDraft("load", "h200", 3, 0))


def a_job(name: str = "job-1", state: JobState = JobState.PENDING, age_s: float = 0) -> Job:
    at = START - timedelta(seconds=age_s)
    spec = freeze(SpecDraft("digits", ("true",), POOLS, project="vision"), DEFAULTS)
    return advance(Job(JobId(name), spec, at, ANN, at, new_attempt(spec, 1, ANN, at)), state, at)


def a_node(*pools: str, job: str = "job-1") -> NodeView:
    run = RunKey(JobId(job), 1)
    claims = tuple(Claim(f"{run}-{index}", "x", None, Room(4), run, pool=pool) for index, pool in enumerate(pools))
    return NodeView("node-a", "h200", 8, Room(8), claims=claims)


def test_a_pool_waits_for_machines_that_are_not_on_a_node() -> None:
    found = demands([a_job()], placed([a_node("train"), a_node("train", job="job-2")]))
    assert [(one.pool, one.machines, one.gpus) for one in found] == [("train", 1, 4), ("judge", 1, 1)]
    assert demands([a_job()], placed([a_node("train", "train", "judge")])) == []


def test_who_waits_longest_is_in_front() -> None:
    found = demands([a_job("job-1", age_s=1), a_job("job-2", age_s=2)], {})
    assert [one.job for one in found] == ["job-2", "job-2", "job-1", "job-1"]
    assert found[0].since == START - timedelta(seconds=2)


@pytest.mark.parametrize("state", [state for state in JobState if state in (JobState.RUNNING, JobState.SUBMITTED)])
def test_a_job_that_runs_waits_for_nothing(state: JobState) -> None:
    assert bool(demands([a_job(state=state)], {})) is (state is not JobState.RUNNING)


def test_the_message_is_the_jobs_reason() -> None:
    job = a_job()
    held = replace(job.attempt, reason=reason(ReasonCode.UNSCHEDULABLE, "Its machines find no node.", START))
    assert {one.message for one in demands([job.with_attempt(held)], {})} == {"Its machines find no node."}


def test_without_a_reason_it_says_where_the_job_is() -> None:
    found = {state: demands([a_job(state=state)], {})[0].message for state in (JobState.PACKAGING, JobState.PENDING)}
    what = "2 machines of pool train with 4 h200 GPUs each have no node yet"
    assert found == {
        JobState.PACKAGING: f"{what}: its code is being packed.",
        JobState.PENDING: f"{what}: its Pods are not on a node.",
    }


def test_numbers_name_nothing_of_the_job() -> None:
    train, judge = demands([a_job()], {})
    assert train.numbers == "2 machines with 4 h200 GPUs each have no node yet."
    assert judge.numbers == "1 machine with 1 b200 GPU has no node yet."
