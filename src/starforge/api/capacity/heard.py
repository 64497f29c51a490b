"""How fresh what is known of a fleet's nodes is."""

from dataclasses import dataclass
from datetime import datetime

from starforge.api.enums import Freshness
from starforge.domain.capacity.nodes import FleetNodes
from starforge.domain.health import Health, HealthCheck, HealthCheckKind, HealthStatus
from starforge.domain.reason import Reason, ReasonCode, reason


@dataclass(frozen=True)
class Heard:
    """How well the nodes of a fleet are known, as an Observation tells it; `observed_at` is None if it never told."""

    freshness: Freshness
    observed_at: datetime | None = None
    stale_since: datetime | None = None
    problem: Reason | None = None


def heard(nodes: FleetNodes | None, seen_at: datetime | None, health: Health) -> Heard:
    """By what is stored of the nodes, of which the newest was seen at `seen_at`, and by how well the fleet is heard."""
    if nodes is None:
        return Heard(Freshness.NEVER)
    check = _observer(nodes.fleet, health)
    observed_at = max((at for at in (nodes.heard_at, seen_at) if at), default=None)
    if check is None or check.status is HealthStatus.OK:
        return Heard(Freshness.LIVE, observed_at)
    said = check.message or f"Fleet {nodes.fleet} can't be heard."
    return Heard(Freshness.STALE, observed_at, check.since, reason(ReasonCode.API_UNAVAILABLE, said, check.since))


def _observer(fleet: str, health: Health) -> HealthCheck | None:
    checks = (check for one in health.fleets if one.fleet == fleet for check in one.checks)
    return next((check for check in checks if check.kind is HealthCheckKind.OBSERVER), None)
