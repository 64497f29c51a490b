"""What workers do, each in a few lines over an action."""

from datetime import timedelta

from starforge.adapters.wiring import Parts
from starforge.domain.actions import enforce_deadlines as deadlines
from starforge.domain.actions.perform import perform
from starforge.domain.idempotency import KEPT
from starforge.domain.names import CommandId

BATCH = 500


def run_command(parts: Parts, command: str) -> None:
    """Do a command, if it is due and nobody else does it."""
    perform(parts.ports, CommandId(command))


def send_due_commands(parts: Parts) -> None:
    """Send again what is due and not done: its message was lost, or it was put off."""
    ports = parts.ports
    ports.nudge(ports.store.due(at=ports.now(), limit=BATCH))


def enforce_deadlines(parts: Parts) -> None:
    """End what has outlived its clocks."""
    deadlines.enforce_deadlines(parts.ports)


def prune_feed(parts: Parts) -> None:
    """Drop rows of the feed that are older than its retention."""
    retention = timedelta(seconds=parts.settings.feed_retention_s)
    parts.ports.store.prune_feed(before=parts.ports.now() - retention)


def forget_keys(parts: Parts) -> None:
    """Forget idempotency keys that have been kept for as long as was promised, and a margin."""
    parts.ports.store.prune_idempotency(before=parts.ports.now() - KEPT)
