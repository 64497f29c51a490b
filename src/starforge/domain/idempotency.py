"""How long an idempotency key is remembered."""

from datetime import timedelta

PROMISED = timedelta(hours=24)
"""What clients are told: `viewer.limits.idempotencySeconds`."""
KEPT = PROMISED + timedelta(hours=1)
"""When it is really forgotten, so that a call that was cut just before its time is still recognised."""
