"""Removes a run that nobody needs, and tells of it: in its job's timeline, or in the fleet's if there is no job."""

import hashlib
import logging

from starforge.domain.actions.apply import apply
from starforge.domain.changes import Changes
from starforge.domain.errors import FleetRefused
from starforge.domain.ports import Ports
from starforge.domain.strays import Stray
from starforge.domain.teardown import Teardown, TeardownState
from starforge.domain.timeline import Entry, Severity, TeardownChanged

_log = logging.getLogger(__name__)


def is_there(ports: Ports, stray: Stray) -> bool:
    """Whether it is there right now: between list and database, a teardown may have come to its end."""
    return bool(ports.fleet.remaining(stray.run))


def remove(ports: Ports, stray: Stray) -> None:
    """Told before it is done, so that nothing disappears in silence; a sweep that dies in between is done again."""
    message = f"{stray.name} of {stray.run} is removed: it was still there, but should not be. {stray.why}"
    _tell(ports, stray, Teardown(TeardownState.DELETING, ports.now(), stray.objects), message)
    try:
        ports.fleet.delete(stray.run)
    except FleetRefused as refused:
        _log.warning("stray run %s can't be removed: %s", stray.run, refused)


def tell_held(ports: Ports, stray: Stray) -> None:
    """Tell once that it does not go."""
    why = stray.held(ports.now())
    known = ports.store.entries([_id(ports, stray)]).get(_id(ports, stray))
    told = known.detail.teardown.state if known and isinstance(known.detail, TeardownChanged) else None
    if why and told is not TeardownState.BLOCKED:
        _tell(ports, stray, Teardown(TeardownState.BLOCKED, why.since, stray.objects, why), why.message)


def _tell(ports: Ports, stray: Stray, teardown: Teardown, message: str) -> None:
    """One entry for a run, however often it comes back."""
    at = ports.now()
    known = ports.store.entries([_id(ports, stray)]).get(_id(ports, stray))
    count = known.count + 1 if known else 1
    run, fleet = (stray.run, None) if stray.known else (None, ports.fleet.name)
    detail = TeardownChanged(teardown)
    entry = Entry(_id(ports, stray), run, Severity.WARNING, message, at, at, detail, count, fleet)
    apply(ports, Changes(entries=[entry]))


def _id(ports: Ports, stray: Stray) -> str:
    return f"event-{hashlib.sha256(f'stray {ports.fleet.name} {stray.run}'.encode()).hexdigest()[:32]}"
