"""Which jobs wait for nodes, in every state, and by which Pods their machines are counted."""

from dataclasses import replace

import pytest

from starforge.domain.capacity.nodes import Claim, NodeView, Room
from starforge.domain.capacity.waiting import Demand, demands, placed
from starforge.domain.job import PATH, Job, JobOutcome, JobState, advance, finish
from starforge.domain.names import JobId, RunKey
from starforge.domain.spec import PoolDraft
from starforge.domain.spec_rules import freeze
from tests.unit.capacity.grounds import node
from tests.unit.examples import AT, DEFAULTS, DRAFT, a_job

RUN = RunKey(JobId("job-1"), 1)


def waits(state: JobState = JobState.PENDING, *pools: PoolDraft) -> Job:
    spec = freeze(replace(DRAFT, pools=pools or (PoolDraft("train", "h200", 2, 4),)), DEFAULTS)
    return advance(a_job(spec), state, AT)


def holding(*claims: tuple[RunKey | None, str | None]) -> NodeView:
    made = [Claim(f"uid-{n}", f"pod-{n}", "ns", Room(4), run, None, pool) for n, (run, pool) in enumerate(claims)]
    return node("node-a", "h200", 8, *made)


def test_a_machine_is_counted_by_its_run_and_pool() -> None:
    other = RunKey(JobId("job-1"), 2)
    there = placed([holding((RUN, "train"), (RUN, "train"), (other, "train"), (RUN, None)), holding((None, None))])
    assert there == {(RUN, "train"): 2, (other, "train"): 1, (RUN, None): 1}


@pytest.mark.parametrize(("found", "missing"), [(0, 2), (1, 1), (2, 0), (3, 0)])
def test_only_what_is_missing_is_waited_for(found: int, missing: int) -> None:
    there = placed([holding(*[(RUN, "train")] * found)])
    assert sum(one.machines for one in demands([waits()], there)) == missing


def test_machines_of_an_earlier_attempt_do_not_count() -> None:
    [one] = demands([waits()], placed([holding((RunKey(JobId("job-1"), 2), "train"))]))
    assert one.machines == 2


@pytest.mark.parametrize("state", PATH)
def test_a_job_waits_until_it_runs(state: JobState) -> None:
    assert bool(demands([waits(state)], {})) is (state is not JobState.RUNNING)


def test_a_job_that_is_over_waits_for_nothing() -> None:
    over = finish(waits(), JobOutcome.CANCELED, None, AT)
    assert over.state is JobState.FINISHING
    assert demands([over], {}) == []


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (JobState.SUBMITTED, "it was submitted, and its code is not packed yet"),
        (JobState.PACKAGING, "its code is being packed"),
        (JobState.LAUNCHING, "it is being launched"),
        (JobState.PENDING, "its Pods are not on a node"),
    ],
)
def test_why_is_told_in_every_state(state: JobState, why: str) -> None:
    pool = PoolDraft("train", "h200", 1, 1)
    [one] = demands([waits(state, pool)], {})
    said = f"1 machine of pool train with 1 h200 GPU has no node yet: {why}."
    assert one == Demand(JobId("job-1"), "default", "train", "h200", 1, 1, AT, said)


def test_pools_keep_the_order_of_the_spec_and_those_without_gpus_wait_for_none() -> None:
    pools = (PoolDraft("z", "h200", 1, 1), PoolDraft("load", "h200", 1, 0), PoolDraft("a", "b200", 1, 1))
    assert [one.pool for one in demands([waits(JobState.PENDING, *pools)], {})] == ["z", "a"]


def test_jobs_of_the_same_moment_are_in_order_of_their_ids() -> None:
    jobs = [replace(waits(), id=JobId(name)) for name in ("job-2", "job-1")]
    assert [one.job for one in demands(jobs, {})] == ["job-1", "job-2"]
