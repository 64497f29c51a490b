"""What is said of health follows from what was checked, and from how long ago."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from starforge.domain.health import (
    PLATFORM,
    CommandQueue,
    Finding,
    Health,
    HealthCheck,
    HealthReading,
    HealthReport,
    HealthStatus,
    ObserverHeard,
    ObserverLease,
    fleet_subject,
)
from starforge.domain.health import (
    HealthCheckKind as Kind,
)
from starforge.domain.judging import dated, judge, what_is_told, worst
from starforge.domain.signs import SILENT, STALE, WAITS

AT = datetime(2026, 3, 4, 14, 2, 11, tzinfo=UTC)
OK, DEGRADED, DOWN, UNKNOWN = HealthStatus.OK, HealthStatus.DEGRADED, HealthStatus.DOWN, HealthStatus.UNKNOWN
DATABASE = Finding(Kind.DATABASE, seconds=0.01)
WELL = (Kind.KUBERNETES_API, Kind.RAYJOB_CRD, Kind.OPERATOR, Kind.RBAC)


def ago(seconds: float) -> datetime:
    return AT - timedelta(seconds=seconds)


def check(kind: Kind, status: HealthStatus = OK, message: str | None = None) -> HealthCheck:
    return HealthCheck(kind, status, message or (None if status is OK else f"{kind} is {status}"), ago(600), ago(5))


def report(subject: str, *checks: HealthCheck, age_s: float = 5) -> HealthReport:
    return HealthReport(subject, checks, ago(age_s), kubernetes_version="v1.34.4")


def reading(
    *fleet: HealthCheck, objects: HealthStatus = OK, age_s: float = 5, commands: CommandQueue | None = None,
    lease: ObserverLease | None = None, heard: ObserverHeard | None = None,
) -> HealthReading:  # fmt: skip
    reports = [
        report(PLATFORM, check(Kind.OBJECT_STORE, objects), age_s=age_s),
        report(fleet_subject("home"), *(fleet or map(check, WELL)), age_s=age_s),
    ]
    held = lease or ObserverLease("one", AT + timedelta(seconds=9), heard or ObserverHeard(ago(1), 0.2))
    return HealthReading({one.subject: one for one in reports}, {"home": held}, commands or CommandQueue())


def health(found: HealthReading, *own: Finding, before: Health | None = None, at: datetime = AT) -> Health:
    return judge(found, own or (DATABASE,), ["home"], before, at)


def of(kind: Kind, judged: Health) -> HealthCheck:
    [found] = [one for one in (*judged.checks, *judged.fleets[0].checks) if one.kind is kind]
    return found


def test_all_is_well() -> None:
    judged = health(reading())
    assert (judged.status, judged.message) == (OK, None)
    assert [one.kind for one in judged.checks] == [Kind.DATABASE, Kind.OBJECT_STORE, Kind.WORKERS, Kind.BEAT]
    [fleet] = judged.fleets
    assert (fleet.status, fleet.message, fleet.observer_lag_seconds) == (OK, None, 0.2)
    assert [one.kind for one in fleet.checks] == [*WELL, Kind.OBSERVER]
    assert fleet.kubernetes_version == "v1.34.4"
    assert judged.checked_at == ago(5)


@pytest.mark.parametrize(
    ("found", "status", "fleet"),
    [
        (reading(objects=DOWN), DEGRADED, OK),
        (reading(check(Kind.KUBERNETES_API, DOWN)), DOWN, DOWN),
        (reading(check(Kind.KUBERNETES_API), check(Kind.RBAC, DEGRADED)), DEGRADED, DEGRADED),
        (reading(check(Kind.KUBERNETES_API), check(Kind.OPERATOR, UNKNOWN)), OK, OK),
        (reading(check(Kind.KUBERNETES_API), check(Kind.RBAC, UNKNOWN)), UNKNOWN, UNKNOWN),
        (reading(lease=ObserverLease("one", ago(1))), DEGRADED, DEGRADED),
    ],
)
def test_the_worst_that_matters_is_the_status(found: HealthReading, status: HealthStatus, fleet: HealthStatus) -> None:
    judged = health(found)
    assert (judged.status, judged.fleets[0].status) == (status, fleet)
    assert (judged.message is None) == (status is OK)


def test_without_the_database_nothing_works() -> None:
    judged = health(reading(), Finding(Kind.DATABASE, DOWN, "It is away."))
    assert (judged.status, judged.message, judged.fleets[0].status) == (DOWN, "It is away.", OK)


def test_the_banner_tells_of_what_is_bad_before_what_is_unknown() -> None:
    judged = health(reading(check(Kind.RBAC, DOWN), check(Kind.KUBERNETES_API, UNKNOWN), objects=UNKNOWN))
    assert judged.message == "RBAC is DOWN"


def test_what_no_worker_checks_any_more_is_unknown_and_says_since_when() -> None:
    judged = health(reading(age_s=STALE.total_seconds() + 1))
    objects = of(Kind.OBJECT_STORE, judged)
    assert (objects.status, objects.message) == (
        UNKNOWN, "Not checked since 14:02:06 UTC, as no tick has run. It was OK then.",
    )  # fmt: skip
    assert of(Kind.BEAT, judged).status is DOWN
    assert of(Kind.BEAT, judged).since == ago(STALE.total_seconds() + 1)
    assert (judged.status, judged.fleets[0].status) == (DEGRADED, UNKNOWN)
    assert of(Kind.OBSERVER, judged).status is OK  # that needs no worker


def test_ticks_that_redis_keeps_back_are_told_as_such() -> None:
    late = reading(age_s=STALE.total_seconds() + 1)
    judged = health(late, DATABASE, Finding(Kind.REDIS, DOWN, "It hangs."))
    assert "comes by Redis" in str(of(Kind.BEAT, judged).message)


def test_nothing_was_checked_yet() -> None:
    judged = health(HealthReading({}, {}, CommandQueue()))
    assert judged.status is UNKNOWN
    assert judged.fleets[0].message == "Fleet home was not checked yet, which a worker does."
    assert [of(kind, judged).status for kind in (Kind.WORKERS, Kind.BEAT, Kind.OBSERVER)] == [UNKNOWN, UNKNOWN, DOWN]


@pytest.mark.parametrize(
    ("age_s", "waits_s", "status"),
    [(5, 0, OK), (5, 59, OK), (5, 61, DEGRADED), (60, 61, DOWN), (60, 0, UNKNOWN)],
)
def test_workers_are_seen_by_what_waits_for_them(age_s: float, waits_s: float, status: HealthStatus) -> None:
    queue = CommandQueue(3, ago(waits_s), ago(waits_s) if waits_s else None)
    found = of(Kind.WORKERS, health(reading(age_s=age_s, commands=queue)))
    assert found.status is status
    if status in (DEGRADED, DOWN):
        assert found.since == ago(waits_s)


def test_a_command_that_somebody_works_on_keeps_nobody_waiting() -> None:
    busy = CommandQueue(1, ago(WAITS.total_seconds() + 60), None)
    assert of(Kind.WORKERS, health(reading(commands=busy))).status is OK


@pytest.mark.parametrize(
    ("heard", "status", "lag"),
    [
        (ObserverHeard(ago(1), 0.3), OK, 0.3),
        (ObserverHeard(ago(9), None, "It does not answer."), DEGRADED, None),
        (ObserverHeard(ago(SILENT.total_seconds() + 1), 0.3), DEGRADED, 0.3),
        (ObserverHeard(), DEGRADED, None),
        (ObserverHeard(ago(1), 12.0), DEGRADED, 12.0),
    ],
)
def test_an_observer_is_as_well_as_it_hears(heard: ObserverHeard, status: HealthStatus, lag: float | None) -> None:
    judged = health(reading(heard=heard))
    assert (of(Kind.OBSERVER, judged).status, judged.fleets[0].observer_lag_seconds) == (status, lag)


def test_a_status_keeps_its_time_until_it_is_another() -> None:
    first = dated([Finding(Kind.RBAC, DOWN, "no")], (), ago(20))
    same = dated([Finding(Kind.RBAC, DOWN, "still no")], first, ago(10))
    other = dated([Finding(Kind.RBAC)], same, AT)
    assert [one[0].since for one in (first, same, other)] == [ago(20), ago(20), AT]
    assert same[0].message == "still no"


def test_what_a_gateway_finds_itself_keeps_its_time_too() -> None:
    first = health(reading(), at=AT)
    second = health(reading(), before=first, at=AT + timedelta(seconds=5))
    assert of(Kind.DATABASE, second).since == AT
    assert of(Kind.DATABASE, second).checked_at == AT + timedelta(seconds=5)


def test_when_a_check_was_made_and_what_it_took_is_no_change() -> None:
    first = health(reading())
    later = health(reading(age_s=1), Finding(Kind.DATABASE, seconds=0.5), before=first, at=AT + timedelta(seconds=3))
    assert what_is_told(first) == what_is_told(later)
    assert what_is_told(first) != what_is_told(health(reading(objects=DOWN), before=first))
    worse = replace(first.fleets[0], kubernetes_version="v2")
    assert what_is_told(first) != what_is_told(replace(first, fleets=(worse,)))


def test_without_a_single_answer_nothing_is_known() -> None:
    assert worst([check(Kind.OPERATOR, UNKNOWN)]) is UNKNOWN
