"""Launching: one run whatever happens in between, and what the fleet gets to know."""

from datetime import timedelta

import pytest

from starforge.domain.actions.cancel import Wish, cancel
from starforge.domain.actions.launch import claim_key, nonce_hash
from starforge.domain.actions.perform import LEASE_S
from starforge.domain.capsule import capsule_key
from starforge.domain.deadlines import ClockKind, ClockState
from starforge.domain.errors import FleetUnavailable
from starforge.domain.job import JobOutcome, JobState
from starforge.domain.names import run_name
from starforge.domain.observation import RunPhase
from starforge.domain.reason import ReasonCode, reason
from tests.unit.actions.fakes import START, Crash
from tests.unit.actions.world import ANN, World, head, with_limits


def test_a_launch_order_has_everything_that_a_fleet_needs(world: World) -> None:
    job = world.job(world.pending(with_limits(pre_running=900)))
    (order,) = world.fleet.launches
    assert job.capsule
    assert order.name == run_name(job.spec.name, job.run)
    assert order.spec == job.spec
    assert capsule_key(job.capsule) in order.capsule.url
    assert claim_key(job.run) in order.claim.url
    assert order.claim_until == START + timedelta(seconds=1500)
    assert order.claim.expires_at >= order.claim_until
    assert order.transport_sha256 == world.sql.capsules([job.capsule])[job.capsule].transport_sha256
    assert job.attempt.nonce_hashes == (nonce_hash(order.nonce),)
    assert order.nonce not in repr(job)


def test_the_claim_of_a_job_without_a_clock_lives_as_long_as_a_signature(world: World) -> None:
    world.pending(with_limits(pre_running=0))
    (order,) = world.fleet.launches
    assert order.claim_until == START + timedelta(seconds=world.objects.longest_signature_s)


def test_it_leaves_the_job_pending_with_its_clock_and_name(world: World) -> None:
    job = world.job(world.pending())
    clocks = {clock.kind: clock.state for clock in job.attempt.clocks}
    assert clocks[ClockKind.QUEUE] is ClockState.STOPPED
    assert clocks[ClockKind.PRE_RUNNING] is ClockState.RUNNING
    assert job.attempt.run is not None
    assert job.attempt.run.uid == f"uid of {job.run}"


def test_every_nonce_that_a_run_may_have_counts(world: World) -> None:
    job = world.submit()
    world.fleet.during_launch = die
    with pytest.raises(Crash):
        world.work()
    world.fleet.during_launch = None
    world.clock.forward(LEASE_S + 1)
    world.work()
    first, second = world.fleet.launches
    assert first.nonce != second.nonce
    assert world.fleet.orders[world.run(job)] is first
    world.say(job, world.started(job))
    assert world.job(job).state is JobState.RUNNING


def die() -> None:
    raise Crash


def test_a_fleet_that_refuses_for_good_ends_the_job_with_its_reason(world: World) -> None:
    why = reason(ReasonCode.QUOTA, "No more than 8 GPUs.", START)
    world.fleet.refuses = why
    job = world.submit()
    world.work()
    after = world.job(job)
    assert after.attempt.outcome is JobOutcome.FAILED
    assert after.attempt.reason == why
    world.settle(5)
    assert world.job(job).state is JobState.FAILED
    assert len(world.fleet.launches) == 1
    assert world.fleet.deletes == [world.run(job)]


def test_a_launch_that_a_quota_holds_waits_with_that_reason_and_goes_on(world: World) -> None:
    full = reason(ReasonCode.QUOTA, "quota gpus of the namespace is used up", START)

    def refuse() -> None:
        raise FleetUnavailable("The Kubernetes API answered 403.", reason=full)

    job = world.submit()
    world.fleet.during_launch = refuse
    world.work()
    assert (world.job(job).state, world.job(job).attempt.reason) == (JobState.LAUNCHING, full)
    world.fleet.during_launch = None
    world.clock.forward(60)
    world.work()
    assert world.job(job).state is JobState.PENDING


@pytest.mark.parametrize("refuses", [True, False])
def test_a_cancel_while_the_launch_is_in_flight_leaves_nothing_behind(world: World, refuses: bool) -> None:
    job = world.submit()
    world.fleet.during_launch = lambda: cancel(world.ports, job, Wish(ANN))
    if refuses:
        world.fleet.refuses = reason(ReasonCode.QUOTA, "No more than 8 GPUs.", START)
        world.store.interfere = [lambda: None] * 4 + [lambda: cancel(world.ports, job, Wish(ANN))]
    world.settle(10)
    after = world.job(job)
    assert after.state is JobState.CANCELED
    assert world.fleet.orders == {}
    assert world.states(job).count(JobState.FINISHING) == 1


def test_a_run_that_starts_before_its_launch_is_written_down_keeps_its_state(world: World) -> None:
    job = world.submit()
    world.fleet.during_launch = lambda: world.see(job, RunPhase.RUNNING, head())
    world.work()
    after = world.job(job)
    assert after.state is JobState.RUNNING
    assert after.attempt.run is not None
    assert after.attempt.run.uid == f"uid of {after.run}"
    assert world.states(job)[-2:] == [JobState.PENDING, JobState.RUNNING]


def test_a_capsule_without_a_record_is_a_defect_that_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world.fleet, "signature_seconds", lambda spec: 1 / 0)
    job = world.submit()
    world.settle(200)
    after = world.job(job)
    assert after.state is JobState.FAILED
    assert after.attempt.reason is not None
    assert after.attempt.reason.code is ReasonCode.INTERNAL
