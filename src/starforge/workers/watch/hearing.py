"""What an observer makes of how well the fleet is heard: stale jobs, and a note for whoever asks for health."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from starforge.domain.actions.hear import hear
from starforge.domain.health import ObserverHeard
from starforge.domain.observation import FleetHeard, Seen
from starforge.domain.ports import Ports

FIRST_WORD = timedelta(seconds=10)
"""How long a watch that begins may take to know what there is, before that is told as an outage."""
BLINK = timedelta(seconds=3)
"""An outage that is over sooner is not worth telling."""
NOTE_EVERY = timedelta(seconds=5)
LAPSE = timedelta(seconds=10)
"""After so long without a word of ours, others may have said that nobody observes the fleet."""
SAY_EVERY = timedelta(minutes=5)
"""So they may have if they were slow; this is how long that may stay."""


class Hearing:
    """Of one time of holding the lease."""

    def __init__(self, ports: Ports, holder: str) -> None:
        self._ports, self._holder = ports, holder
        self._told: str | None = None
        self._stands = False
        self._wrong_since: datetime | None = None
        self._well_at: datetime | None = None
        self._noted: tuple[datetime, str | None] | None = None
        self._took_at = self._said_at = ports.now()

    def take(self, batch: Sequence[Seen]) -> None:
        """Mark jobs if the fleet can't be heard, or can again; StoreUnavailable, and safe to repeat then."""
        heard = [seen for seen in batch if isinstance(seen, FleetHeard)]
        if heard:
            now = self._ports.now()
            self._stands = self._stands and now - self._took_at < LAPSE and now - self._said_at < SAY_EVERY
            self._mark(heard[-1])
            self._note(heard[0].at, heard[-1])
            self._took_at = now

    def _mark(self, newest: FleetHeard) -> None:
        if newest.problem is None:
            self._well_at, self._wrong_since = newest.at, None
        elif self._wrong_since is None:
            self._wrong_since = newest.at
        patience = FIRST_WORD if self._well_at is None else BLINK
        if self._wrong_since and newest.at - self._wrong_since < patience:
            return
        if not self._stands or newest.problem != self._told:
            changed = (newest.problem is None) != (self._told is None)
            hear(self._ports, newest.problem, tell=changed, code=newest.code, since=self._wrong_since)
            self._told, self._stands, self._said_at = newest.problem, True, self._ports.now()

    def _note(self, first_at: datetime, newest: FleetHeard) -> None:
        """Now and then, and whenever the problem is another one."""
        if self._noted and self._noted[1] == newest.problem and newest.at - self._noted[0] < NOTE_EVERY:
            return
        lag_s = max(0.0, (self._ports.now() - first_at).total_seconds())
        heard = ObserverHeard(self._well_at, None if newest.problem else lag_s, newest.problem)
        self._ports.store.note_heard(self._ports.fleet.name, holder=self._holder, heard=heard)
        self._noted = (newest.at, newest.problem)
