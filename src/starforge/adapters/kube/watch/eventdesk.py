"""Matches Events to runs by the uid of what they are about."""

from collections import OrderedDict
from collections.abc import Iterator

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.views.events import count_of, event_seen
from starforge.adapters.kube.watch.messages import Kind
from starforge.adapters.kube.watch.uids import Uids
from starforge.domain.observation import EventSeen

WAIT_S = 60.0
WAITING_MAX = 5_000
TOLD_MAX = 50_000
_ABOUT = frozenset({Kind.RAYJOB, Kind.RAYCLUSTER, Kind.POD, Kind.JOB})


class EventDesk:
    """Tells each Event once per count. One whose object is not known yet waits for it, for a minute at most."""

    def __init__(self, uids: Uids) -> None:
        self._uids = uids
        self._told: OrderedDict[str, int] = OrderedDict()
        self._waiting: OrderedDict[str, tuple[float, KubeObject]] = OrderedDict()

    def take(self, event: KubeObject, clock: float) -> EventSeen | None:
        """The Event if it is news about a run; `clock` is in seconds."""
        about = event.get("involvedObject") or {}
        if about.get("kind") not in _ABOUT or self._told.get(_uid(event)) == count_of(event):
            return None
        if self._uids.run(about.get("uid") or "") is None:
            self._wait(event, clock)
            return None
        return self._tell(event)

    def matched(self, clock: float) -> Iterator[EventSeen]:
        """Events that waited and whose object is known now."""
        for uid, (since, event) in list(self._waiting.items()):
            if self._uids.run(event["involvedObject"].get("uid") or "") is not None:
                del self._waiting[uid]
                seen = self._tell(event)
                if seen is not None:
                    yield seen
            elif clock - since > WAIT_S:
                del self._waiting[uid]

    def _wait(self, event: KubeObject, clock: float) -> None:
        since = self._waiting.get(_uid(event), (clock, event))[0]
        self._waiting[_uid(event)] = (since, event)
        if len(self._waiting) > WAITING_MAX:
            self._waiting.popitem(last=False)

    def _tell(self, event: KubeObject) -> EventSeen | None:
        run = self._uids.run(event["involvedObject"]["uid"])
        if run is None:
            return None
        self._told[_uid(event)] = count_of(event)
        self._told.move_to_end(_uid(event))
        if len(self._told) > TOLD_MAX:
            self._told.popitem(last=False)
        return event_seen(run, event)


def _uid(event: KubeObject) -> str:
    uid: str = event["metadata"]["uid"]
    return uid
