"""Asks again what may be asked again, for as long as that makes sense."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from starforge.cli.outage import Patience
from starforge.domain.errors import StarForgeError

Result = TypeVar("Result")


@dataclass(frozen=True)
class Persistence:
    """Calls that are safe to repeat. `note` is told of the first failure of an outage and of its end."""

    note: Callable[[str], None]
    patience: Patience = field(default_factory=Patience)
    sleep: Callable[[float], None] = time.sleep
    now: Callable[[], float] = time.monotonic

    def ask(self, call: Callable[[], Result]) -> Result:
        """What the call returns; its error if that is no matter of waiting, or went on for too long.

        A gateway that names a time to wait is given it.
        """
        since, waits = None, self.patience.waits()
        while True:
            try:
                result = call()
            except StarForgeError as error:
                if since is not None and self.now() - since > self.patience.give_up:
                    raise
                since = self._begun(error, since)
                self.sleep(max(next(waits), error.retry_after_s or 0))
                continue
            if since is not None:
                self.note("It goes on.")
            return result

    def _begun(self, error: StarForgeError, since: float | None) -> float:
        if not error.retryable:
            raise error
        if since is None:
            self.note(f"{error.message} Trying again …")
        return self.now() if since is None else since
