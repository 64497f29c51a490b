"""Notes that a fleet is not observed, as whoever did it has ended or hangs; safe for any number of workers."""

from datetime import timedelta

from starforge.domain.actions.hear import hear
from starforge.domain.health import ObserverLease
from starforge.domain.ports import Ports
from starforge.domain.signs import observer

HAND_OVER = timedelta(seconds=5)
"""How long another one may take to follow the one whose lease has run out."""


def mind_observer(ports: Ports) -> None:
    """Mark what is live as stale while nobody observes its fleet; the next observer hears it again, and says so."""
    lease = _lease(ports)
    if _is_observed(ports, lease):
        return
    problem = observer(ports.fleet.name, lease, ports.now()).message
    since = (lease.heard.at or lease.until) if lease else None
    hear(ports, problem, tell=lease is not None, since=since, still=lambda: not _is_observed(ports, _lease(ports)))


def _lease(ports: Ports) -> ObserverLease | None:
    return ports.store.health(at=ports.now()).observers.get(ports.fleet.name)


def _is_observed(ports: Ports, lease: ObserverLease | None) -> bool:
    return lease is not None and ports.now() < lease.until + HAND_OVER
