"""Keeps the lease of a command for as long as its worker lives and works at it."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from starforge.domain.actions.perform import LEASE_S, RENEW_S
from starforge.domain.changes import Lease
from starforge.domain.errors import StoreUnavailable
from starforge.domain.ports import Ports

_log = logging.getLogger(__name__)


@contextmanager
def renewed(ports: Ports, lease: Lease, *, every_s: float = RENEW_S, lease_s: float = LEASE_S) -> Iterator[None]:
    """Renews the lease from a thread of its own: what a killed or frozen process held runs out."""
    over = threading.Event()
    keeper = threading.Thread(
        target=_keep, args=(ports, lease, over, every_s, lease_s), name=f"lease-{lease.command.id}"
    )
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join()


def _keep(ports: Ports, lease: Lease, over: threading.Event, every_s: float, lease_s: float) -> None:
    while not over.wait(every_s):
        try:
            if not ports.store.renew(lease, at=ports.now(), lease_s=lease_s):
                return _log.info("the lease on command %s is over", lease.command.id)
        except StoreUnavailable as outage:
            _log.warning("the lease on command %s is not renewed: %s", lease.command.id, outage)
