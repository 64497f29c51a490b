"""Checks the object store and the fleet, and stores what was found; the feed tells of it when people see a change."""

import logging
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from starforge.domain.actions.apply import apply
from starforge.domain.beside import beside
from starforge.domain.changes import Changes
from starforge.domain.errors import ObjectStoreUnavailable, StaleRevision
from starforge.domain.health import (
    PLATFORM,
    Access,
    Finding,
    FleetProbe,
    HealthCheckKind,
    HealthReport,
    HealthStatus,
    HealthWrite,
    fleet_subject,
)
from starforge.domain.job import JobState
from starforge.domain.judging import dated
from starforge.domain.ports import Ports
from starforge.domain.queries import JobFilter, JobOrder, Window
from starforge.domain.teardown import TeardownState

WITHIN_S = 12.0
NO_STATUS = timedelta(seconds=30)
"""An operator that acts gives a new RayJob a status within this."""
BLOCKED = TeardownState.BLOCKED
_LOOKED_AT = 50
_LATE = f"No answer came within {WITHIN_S:g} seconds."
_log = logging.getLogger(__name__)


def check_health(ports: Ports) -> None:
    """Make every check beside the others. Of several at once, the first to store what it found wins."""
    known = ports.store.health(at=ports.now()).reports
    platform, fleet = known.get(PLATFORM), known.get(fleet_subject(ports.fleet.name))
    asked = fleet.access if fleet else None
    probes = beside({PLATFORM: lambda: _objects(ports), "fleet": lambda: _fleet(ports, asked)}, within_s=WITHIN_S)
    at = ports.now()
    found = [
        _report(PLATFORM, platform, probes.get(PLATFORM) or _late([HealthCheckKind.OBJECT_STORE], asked=None), at),
        _report(fleet_subject(ports.fleet.name), fleet, probes.get("fleet") or _late_fleet(fleet), at),
    ]
    try:
        apply(ports, Changes(health=found))
    except StaleRevision:
        _log.info("somebody else has just checked the health of fleet %s", ports.fleet.name)


def _objects(ports: Ports) -> FleetProbe:
    kind, began = HealthCheckKind.OBJECT_STORE, ports.now()
    try:
        ports.objects.check()
    except ObjectStoreUnavailable as outage:
        return FleetProbe((Finding(kind, HealthStatus.DOWN, outage.message),))
    return FleetProbe((Finding(kind, seconds=(ports.now() - began).total_seconds()),))


def _fleet(ports: Ports, asked: Access | None) -> FleetProbe:
    """The fleet's own word, and what its runs show of it."""
    probe = _seen_by_runs(ports, ports.fleet.health(asked))
    return replace(probe, findings=(*probe.findings, _teardowns(ports)))


def _teardowns(ports: Ports) -> Finding:
    """Whether what has ended goes: what hangs holds its GPUs, and is named on its job."""
    kind = HealthCheckKind.TEARDOWN
    which = JobFilter(states=(JobState.FINISHING,), fleets=(ports.fleet.name,))
    page = ports.store.job_page(which, JobOrder(descending=False), Window(_LOOKED_AT))
    blocked = [job for _, job in page.rows if job.attempt.teardown and job.attempt.teardown.state is BLOCKED]
    if not blocked:
        return Finding(kind)
    first = blocked[0].attempt.teardown
    why = f" {first.reason.message}" if first and first.reason else ""
    left = "1 job has" if len(blocked) == 1 else f"{len(blocked)} jobs have"
    message = f"What {left} left in fleet {ports.fleet.name} does not go, such as of {blocked[0].id}:{why}"
    return Finding(kind, HealthStatus.DEGRADED, message, since=first.reason.since if first and first.reason else None)


def _seen_by_runs(ports: Ports, probe: FleetProbe) -> FleetProbe:
    by_kind = {one.kind: one for one in probe.findings}
    api, operator = by_kind.get(HealthCheckKind.KUBERNETES_API), by_kind.get(HealthCheckKind.OPERATOR)
    is_heard = api is not None and api.status is HealthStatus.OK
    if operator is None or operator.status is HealthStatus.DOWN or not is_heard:
        return probe
    shown = _shown_by_runs(ports, operator)
    return replace(probe, findings=tuple(shown if one is operator else one for one in probe.findings))


def _shown_by_runs(ports: Ports, operator: Finding) -> Finding:
    """The operator's finding, or what speaks against it: RayJobs of ours that have no status yet, and should."""
    which = JobFilter(states=(JobState.PENDING,), fleets=(ports.fleet.name,))
    page = ports.store.job_page(which, JobOrder(descending=False), Window(_LOOKED_AT))
    attempts = [job.attempt for _, job in page.rows if job.attempt.stale_since is None]
    before = ports.now() - NO_STATUS
    launched = [one.launched_at for one in attempts if one.rayjob and not one.rayjob.deployment_status]
    silent = [at for at in launched if at and at < before]
    if not silent:
        return operator
    seen = operator.status is HealthStatus.OK
    status = HealthStatus.DEGRADED if seen else HealthStatus.DOWN
    what = "is there but slow" if seen else "does not act"
    message = (
        f"The KubeRay operator {what}: a RayJob has had no status for over {NO_STATUS.seconds} seconds. Look at the "
        "operator's Pod, and raise its reconcileConcurrency if there are many jobs."
    )
    return Finding(HealthCheckKind.OPERATOR, status, message, since=min(silent))


def _late_fleet(before: HealthReport | None) -> FleetProbe:
    kinds = [check.kind for check in before.checks] if before else []
    return _late(kinds, asked=before.access if before else None)


def _late(kinds: Iterable[HealthCheckKind], *, asked: Access | None) -> FleetProbe:
    return FleetProbe(tuple(Finding(kind, HealthStatus.UNKNOWN, _LATE) for kind in kinds), access=asked)


def _report(subject: str, before: HealthReport | None, probe: FleetProbe, at: datetime) -> HealthWrite:
    """What was found; what a probe does not tell of versions stays what it was."""
    report = HealthReport(
        subject,
        dated(probe.findings, before.checks if before else (), at),
        at,
        revision=before.revision if before else 0,
        kubernetes_version=probe.kubernetes_version or (before.kubernetes_version if before else None),
        operator_version=probe.operator_version or (before.operator_version if before else None),
        rayjob_api_version=probe.rayjob_api_version or (before.rayjob_api_version if before else None),
        access=probe.access,
    )
    return HealthWrite(report, told=before is None or _told(report) != _told(before))


def _told(report: HealthReport) -> object:
    """What people see of a report, but for when it was made and what that took."""
    checks = [(check.kind, check.status, check.message, check.since) for check in report.checks]
    versions = report.kubernetes_version, report.operator_version, report.rayjob_api_version
    return checks, versions, report.access.checks if report.access else None
