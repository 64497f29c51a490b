"""What workers do, each in a few lines over an action."""

import logging
from datetime import timedelta

from starforge.adapters.wiring import Parts
from starforge.domain.actions import check_health as checking
from starforge.domain.actions import enforce_deadlines as deadlines
from starforge.domain.actions import mind_observer as minding
from starforge.domain.actions import move_logs as moving
from starforge.domain.actions import prune as pruning
from starforge.domain.actions import sweep as sweeping
from starforge.domain.actions.perform import perform
from starforge.domain.errors import FleetRefused, Outside, StoreUnavailable
from starforge.domain.idempotency import KEPT
from starforge.domain.names import CommandId
from starforge.workers.leases import renewed

BATCH = 500
MOVE_S = 4.0
"""Less than a turn takes to come, so that moving logs keeps about one process of the workers busy at most."""
_log = logging.getLogger(__name__)


def run_command(parts: Parts, command: str) -> None:
    """Do a command, if it is due and nobody else does it."""
    perform(parts.ports, CommandId(command), renewed)


def send_due_commands(parts: Parts) -> None:
    """Send again what is due and not done: its message was lost, or it was put off."""
    ports = parts.ports
    ports.nudge(ports.store.due(at=ports.now(), limit=BATCH))


def enforce_deadlines(parts: Parts) -> None:
    """End what has outlived its clocks."""
    deadlines.enforce_deadlines(parts.ports)


def mind_observer(parts: Parts) -> None:
    """Note on jobs that nobody observes their fleet, if so."""
    minding.mind_observer(parts.ports)


def check_health(parts: Parts) -> None:
    """See how the object store and the fleet are; without the database that can't be told, which gateways see."""
    try:
        checking.check_health(parts.ports)
    except StoreUnavailable as outage:
        _log.warning("health is not checked: %s", outage)


def prune_feed(parts: Parts) -> None:
    """Drop rows of the feed that are older than its retention."""
    retention = timedelta(seconds=parts.settings.feed_retention_s)
    parts.ports.store.prune_feed(before=parts.ports.now() - retention)


def forget_keys(parts: Parts) -> None:
    """Forget idempotency keys that have been kept for as long as was promised, and a margin."""
    parts.ports.store.prune_idempotency(before=parts.ports.now() - KEPT)


def sweep(parts: Parts) -> None:
    """Remove what nobody needs, and have jobs judged whose run is gone; in its next turn if that can't be told."""
    try:
        sweeping.sweep(parts.ports)
    except (Outside, FleetRefused) as why:
        _log.warning("the sweep of fleet %s waits for its next turn: %s", parts.ports.fleet.name, why)


def prune(parts: Parts) -> None:
    """Forget old commands, and code that was announced and never used."""
    try:
        pruning.prune(parts.ports)
    except Outside as why:
        _log.warning("what is old is forgotten later: %s", why)


def move_logs(parts: Parts) -> None:
    """Move lines of archived logs from the database to the object store, for some seconds."""
    try:
        moving.move_logs(parts.ports, seconds=MOVE_S)
    except Outside as why:
        _log.warning("archived lines stay in the database until the next turn: %s", why)
