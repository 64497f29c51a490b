"""Which run a uid belongs to, also for a while after its object is gone: Events come late."""

from collections import OrderedDict

from starforge.domain.names import RunKey

GONE_KEPT = 20_000


class Uids:
    """Uids of what is there, and of the last ones that went."""

    def __init__(self) -> None:
        self._there: dict[str, RunKey] = {}
        self._gone: OrderedDict[str, RunKey] = OrderedDict()

    def add(self, uid: str, run: RunKey) -> None:
        self._there[uid] = run

    def gone(self, uid: str) -> None:
        run = self._there.pop(uid, None)
        if run is not None:
            self._gone[uid] = run
            if len(self._gone) > GONE_KEPT:
                self._gone.popitem(last=False)

    def run(self, uid: str) -> RunKey | None:
        return self._there.get(uid) or self._gone.get(uid)
