"""What was told last of each run, to be told again: whoever hears it knows that it is still so."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime

from starforge.domain.names import RunKey
from starforge.domain.observation import RunPhase, RunSeen


class Pictures:
    """The last picture of each run that has something in the cluster."""

    def __init__(self) -> None:
        self._last: dict[RunKey, RunSeen] = {}

    def keep(self, told: Iterable[RunSeen]) -> Iterator[RunSeen]:
        """The same pictures, which are kept from now on in place of older ones."""
        for seen in told:
            if seen.phase is RunPhase.ABSENT and not seen.pods:
                self._last.pop(seen.run, None)
            else:
                self._last[seen.run] = replace(seen, gone=())
            yield seen

    def again(self, at: datetime) -> Iterator[RunSeen]:
        """Every picture as one of `at`. The views in it stay the same objects, which makes them cheap to compare."""
        for seen in list(self._last.values()):
            yield replace(seen, at=at, rayjob=seen.rayjob and replace(seen.rayjob, observed_at=at))
