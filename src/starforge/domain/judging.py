"""What follows from what was checked: how old a check may be, what a banner says, and since when."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from starforge.domain.health import (
    PLATFORM,
    Finding,
    FleetHealth,
    Health,
    HealthCheck,
    HealthCheckKind,
    HealthReading,
    HealthReport,
    HealthStatus,
    fleet_subject,
)
from starforge.domain.signs import STALE, beat, observer, workers

_VITAL = frozenset(
    {
        HealthCheckKind.DATABASE,
        HealthCheckKind.KUBERNETES_API,
        HealthCheckKind.RAYJOB_CRD,
        HealthCheckKind.OPERATOR,
        HealthCheckKind.RBAC,
        HealthCheckKind.STORAGE,
    }
)
"""Without one of these nothing works of what they are a part of."""
_MAY_BE_UNKNOWN = frozenset({HealthCheckKind.OPERATOR, HealthCheckKind.STORAGE})
"""Checks that need rights which an installation may keep back."""
_BAD = (HealthStatus.DOWN, HealthStatus.DEGRADED)


def dated(findings: Iterable[Finding], before: Iterable[HealthCheck], at: datetime) -> tuple[HealthCheck, ...]:
    """Findings of `at` as checks, each since when it had its status before."""
    known = {check.kind: check for check in before}
    return tuple(_dated(finding, known.get(finding.kind), at) for finding in findings)


def _dated(found: Finding, before: HealthCheck | None, at: datetime) -> HealthCheck:
    same = before is not None and before.status is found.status
    since = before.since if before and same else min(found.since or at, at)
    return HealthCheck(found.kind, found.status, found.message, since, at, found.seconds)


def aged(report: HealthReport, at: datetime) -> tuple[HealthCheck, ...]:
    """Its checks, as far as they still say something at `at`."""
    if at - report.checked_at <= STALE:
        return report.checks
    return tuple(_outdated(check) for check in report.checks)


def _outdated(check: HealthCheck) -> HealthCheck:
    was = f"It was {check.status} then." if check.status is not HealthStatus.UNKNOWN else "Nothing was known then."
    last = f"{check.checked_at.astimezone(UTC):%H:%M:%S} UTC"
    message = f"Not checked since {last}, as no tick has run. {was}"
    return replace(check, status=HealthStatus.UNKNOWN, message=message, since=check.checked_at, seconds=None)


def worst(checks: Sequence[HealthCheck]) -> HealthStatus:
    """The worst of some checks that matters."""
    if any(check.status is HealthStatus.DOWN and check.kind in _VITAL for check in checks):
        return HealthStatus.DOWN
    if any(check.status in _BAD for check in checks):
        return HealthStatus.DEGRADED
    unknown = [check for check in checks if check.status is HealthStatus.UNKNOWN]
    matters = any(check.kind not in _MAY_BE_UNKNOWN for check in unknown)
    return HealthStatus.UNKNOWN if matters or len(unknown) == len(checks) else HealthStatus.OK


def judge(
    reading: HealthReading, own: Sequence[Finding], fleets: Sequence[str], before: Health | None, at: datetime
) -> Health:
    """Health at `at`, by what the database knows and by `own`, what whoever asks has found itself."""
    report = reading.reports.get(PLATFORM)
    redis = not any(one.kind is HealthCheckKind.REDIS and one.status is HealthStatus.DOWN for one in own)
    derived = [*own, workers(report, reading.commands, at), beat(report, at, redis=redis)]
    checks = (*dated(derived, before.checks if before else (), at), *(aged(report, at) if report else ()))
    told = tuple(_fleet(name, reading, before, at) for name in sorted(fleets))
    every = [*checks, *(check for fleet in told for check in fleet.checks)]
    status = _overall(checks, told)
    checked_at = min((check.checked_at for check in every), default=at)
    message = _banner(checks, told) if status is not HealthStatus.OK else None
    return Health(status, message, checked_at, _in_order(checks), told, reading.commands)


def _fleet(name: str, reading: HealthReading, before: Health | None, at: datetime) -> FleetHealth:
    report, lease = reading.reports.get(fleet_subject(name)), reading.observers.get(name)
    known = next((fleet.checks for fleet in before.fleets if fleet.fleet == name), ()) if before else ()
    watch = observer(name, lease, at)
    checks = (*(aged(report, at) if report else ()), *dated([watch], known, at))
    status = worst(checks) if report else HealthStatus.UNKNOWN
    message = _worst_message(checks) if report else f"Fleet {name} was not checked yet, which a worker does."
    access = report.access.checks if report and report.access else None
    heard = lease.heard if lease and lease.until >= at else None
    return FleetHealth(
        fleet=name,
        status=status,
        message=message if status is not HealthStatus.OK else None,
        checks=_in_order(checks),
        observer_lag_seconds=heard.lag_s if heard and not heard.problem else None,
        kubernetes_version=report.kubernetes_version if report else None,
        operator_version=report.operator_version if report else None,
        rayjob_api_version=report.rayjob_api_version if report else None,
        access=access,
    )


def _overall(checks: Sequence[HealthCheck], fleets: Sequence[FleetHealth]) -> HealthStatus:
    """DOWN only if nothing works."""
    own, statuses = worst(checks), [fleet.status for fleet in fleets]
    if own is HealthStatus.DOWN or (statuses and all(status is HealthStatus.DOWN for status in statuses)):
        return HealthStatus.DOWN
    if any(status in _BAD for status in (own, *statuses)):
        return HealthStatus.DEGRADED
    return HealthStatus.UNKNOWN if HealthStatus.UNKNOWN in (own, *statuses) else HealthStatus.OK


def _banner(checks: Sequence[HealthCheck], fleets: Sequence[FleetHealth]) -> str | None:
    """The sentence of what is worst, StarForge's own parts first."""
    own = [check for check in checks if check.status is not HealthStatus.OK]
    told = [_worst_message(own), *(fleet.message for fleet in fleets)]
    bad = [_worst_message([check for check in own if check.status in _BAD])]
    bad += [fleet.message for fleet in fleets if fleet.status in _BAD]
    return next((message for message in (*bad, *told) if message), None)


def _worst_message(checks: Sequence[HealthCheck]) -> str | None:
    order = (HealthStatus.DOWN, HealthStatus.DEGRADED, HealthStatus.UNKNOWN)
    found = [check.message for status in order for check in checks if check.status is status]
    return found[0] if found else None


def _in_order(checks: Iterable[HealthCheck]) -> tuple[HealthCheck, ...]:
    kinds = list(HealthCheckKind)
    return tuple(sorted(checks, key=lambda check: kinds.index(check.kind)))


def what_is_told(health: Health) -> object:
    """The part of health whose changes subscribers are told: not when a check was last made, nor what it took."""
    groups = [health.checks, *(fleet.checks for fleet in health.fleets)]
    fleets = [replace(fleet, checks=(), observer_lag_seconds=None) for fleet in health.fleets]
    return (
        health.status,
        health.message,
        fleets,
        [[replace(check, checked_at=check.since, seconds=None) for check in checks] for checks in groups],
    )
