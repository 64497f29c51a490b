"""Checks are made beside each other, stored once, and told when people see a change."""

from dataclasses import replace

import pytest

from starforge.domain.actions import check_health as action
from starforge.domain.actions.check_health import check_health
from starforge.domain.health import (
    PLATFORM,
    Access,
    AccessCheck,
    Finding,
    FleetProbe,
    HealthReport,
    fleet_subject,
)
from starforge.domain.health import (
    HealthCheckKind as Kind,
)
from starforge.domain.health import (
    HealthStatus as Status,
)
from starforge.domain.observation import RayJobView, RunPhase
from starforge.domain.queries import FeedKind
from starforge.domain.teardown import TeardownState
from tests.unit.actions.fakes import START, WELL
from tests.unit.actions.world import World

HOME = fleet_subject("home")


def reports(world: World) -> dict[str, HealthReport]:
    return dict(world.sql.health(at=world.clock()).reports)


def statuses(world: World, subject: str) -> dict[Kind, Status]:
    return {check.kind: check.status for check in reports(world)[subject].checks}


def told(world: World) -> list[str]:
    return [row.subject for row in world.feed() if row.kind is FeedKind.HEALTH]


def test_all_is_well_and_told_once(world: World) -> None:
    check_health(world.ports)
    world.clock.forward(10)
    check_health(world.ports)
    assert statuses(world, PLATFORM) == {Kind.OBJECT_STORE: Status.OK}
    kinds = (Kind.KUBERNETES_API, Kind.OPERATOR, Kind.TEARDOWN)
    assert statuses(world, HOME) == dict.fromkeys(kinds, Status.OK)
    assert told(world) == [PLATFORM, HOME]
    assert [row.subject for row in world.published if row.kind is FeedKind.HEALTH] == [PLATFORM, HOME]
    report = reports(world)[HOME]
    assert (report.revision, report.kubernetes_version) == (2, "v1.34.4")
    assert (report.checked_at, report.checks[0].since) == (world.clock(), START)


def test_one_thing_that_is_down_hides_no_other(world: World) -> None:
    world.objects.down = True
    check_health(world.ports)
    [objects] = reports(world)[PLATFORM].checks
    assert (objects.status, objects.message) == (Status.DOWN, "The object store does not answer.")
    assert statuses(world, HOME)[Kind.KUBERNETES_API] is Status.OK
    world.clock.forward(10)
    world.objects.down, world.fleet.down = False, "The Kubernetes API can't be reached."
    check_health(world.ports)
    assert statuses(world, PLATFORM) == {Kind.OBJECT_STORE: Status.OK}
    assert statuses(world, HOME) == {Kind.KUBERNETES_API: Status.DOWN, Kind.TEARDOWN: Status.OK}
    assert reports(world)[HOME].kubernetes_version == "v1.34.4"  # as it was last told
    assert told(world) == [PLATFORM, HOME, PLATFORM, HOME]


def test_a_fleet_whose_check_fails_or_hangs_is_unknown(world: World) -> None:
    check_health(world.ports)
    world.fleet.broken = True
    check_health(world.ports)
    assert set(statuses(world, HOME).values()) == {Status.UNKNOWN}
    assert statuses(world, PLATFORM) == {Kind.OBJECT_STORE: Status.OK}


def test_who_comes_second_leaves_it_to_the_first(world: World) -> None:
    check_health(world.ports)
    world.store.interfere.append(lambda: check_health(replace(world.ports, store=world.sql)))
    world.fleet.down = "away"
    check_health(world.ports)
    assert reports(world)[HOME].revision == 2


def test_what_the_account_may_do_is_kept_for_the_next_time(world: World) -> None:
    access = Access(START, (AccessCheck("create", "rayjobs.ray.io", allowed=True),))
    world.fleet.probe = replace(WELL, access=access)
    check_health(world.ports)
    assert reports(world)[HOME].access == access
    world.fleet.down = "away"
    check_health(world.ports)
    assert reports(world)[HOME].access == access
    assert told(world)[-1] == HOME


def with_operator(status: Status, api: Status = Status.OK) -> FleetProbe:
    return FleetProbe((Finding(Kind.KUBERNETES_API, api), Finding(Kind.OPERATOR, status, None)))


@pytest.mark.parametrize(
    ("seen", "deployment_status", "after_s", "told_as"),
    [
        (Status.UNKNOWN, None, 29, Status.UNKNOWN),
        (Status.UNKNOWN, None, 31, Status.DOWN),
        (Status.OK, None, 31, Status.DEGRADED),
        (Status.DOWN, None, 31, Status.DOWN),
        (Status.UNKNOWN, "Initializing", 31, Status.UNKNOWN),
    ],
)
def test_runs_without_a_status_speak_against_the_operator(
    world: World, seen: Status, deployment_status: str | None, after_s: int, told_as: Status
) -> None:
    job = world.pending()
    view = RayJobView("try", "training", f"uid of {world.run(job)}", deployment_status=deployment_status)
    world.see(job, RunPhase.WAITING, rayjob=view)
    world.clock.forward(after_s)
    world.fleet.probe = with_operator(seen)
    check_health(world.ports)
    assert statuses(world, HOME)[Kind.OPERATOR] is told_as


def test_an_operator_is_not_blamed_for_a_cluster_that_is_not_heard(world: World) -> None:
    job = world.pending()
    world.see(job, RunPhase.WAITING, rayjob=RayJobView("try", "training", f"uid of {world.run(job)}"))
    world.clock.forward(60)
    world.fleet.probe = with_operator(Status.UNKNOWN, api=Status.DOWN)
    check_health(world.ports)
    assert statuses(world, HOME)[Kind.OPERATOR] is Status.UNKNOWN


def test_what_does_not_go_is_named(world: World) -> None:
    job = world.finishing()
    world.fleet.lasts = 10**6
    world.settle(200)
    teardown = world.job(job).attempt.teardown
    assert teardown is not None
    assert (teardown.state, teardown.reason is not None) == (TeardownState.BLOCKED, True)
    check_health(world.ports)
    [found] = [check for check in reports(world)[HOME].checks if check.kind is Kind.TEARDOWN]
    assert (found.status, found.since) == (Status.DEGRADED, teardown.reason.since if teardown.reason else None)
    assert f"What 1 job has left in fleet home does not go, such as of {job}:" in str(found.message)
    world.fleet.lasts = 0
    world.settle(200)
    check_health(world.ports)
    assert statuses(world, HOME)[Kind.TEARDOWN] is Status.OK


def test_a_check_that_never_ends_is_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    check_health(world.ports)
    monkeypatch.setattr(action, "beside", lambda _calls, *, within_s: {})
    check_health(world.ports)
    assert statuses(world, PLATFORM) == {Kind.OBJECT_STORE: Status.UNKNOWN}
    assert set(statuses(world, HOME).values()) == {Status.UNKNOWN}
