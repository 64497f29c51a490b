"""Everything that the watch knows of the namespace right now, and which runs have changed since they were told."""

from datetime import datetime

from starforge.adapters.kube.labels import KubeObject, run_of
from starforge.adapters.kube.views.pods import assign_machines
from starforge.adapters.kube.views.runs import newest, raycluster_view, run_seen
from starforge.adapters.kube.watch.messages import Changed, Kind, Listed
from starforge.adapters.kube.watch.uids import Uids
from starforge.domain.names import RunKey
from starforge.domain.observation import RunSeen

_NEEDED = frozenset({Kind.RAYJOB, Kind.POD})
# What others make for a RayJob, without our labels: found by the uid of its owner.
_OWNED = frozenset({Kind.JOB, Kind.WORKLOAD})


class Board:
    """Objects by kind and uid. Nothing is told before RayJobs and Pods were listed: only then a run is complete.

    A Pod may be seen before its RayJob, as each kind is watched by itself: a run whose RayJob was never seen is told as
    absent once a list lacks it that was begun after its Pod was seen, which is the second one that comes after it.
    """

    def __init__(self, uids: Uids) -> None:
        self._uids = uids
        self._objects: dict[Kind, dict[str, KubeObject]] = {kind: {} for kind in Kind}
        self._by_run: dict[tuple[Kind, RunKey], dict[str, KubeObject]] = {}
        self._listed: set[Kind] = set()
        self._dirty: set[RunKey] = set()
        self._machines: dict[RunKey, dict[str, int]] = {}
        self._gone: dict[RunKey, list[KubeObject]] = {}
        self._sure: set[RunKey] = set()
        self._lacked: set[RunKey] = set()

    @property
    def complete(self) -> bool:
        return self._listed >= _NEEDED

    @property
    def dirty(self) -> bool:
        return self.complete and bool(self._dirty)

    def pod(self, uid: str) -> KubeObject | None:
        return self._objects[Kind.POD].get(uid)

    def listed(self, message: Listed) -> list[KubeObject]:
        """Takes a complete list; the objects that are gone."""
        old, new = self._objects[message.kind], {each["metadata"]["uid"]: each for each in message.objects}
        self._objects[message.kind] = new
        self._listed.add(message.kind)
        gone = [each for uid, each in old.items() if uid not in new]
        changed = [each for uid, each in new.items() if uid not in old or _version(each) != _version(old[uid])]
        for each in gone:
            self._forget(message.kind, each)
        for each in changed:
            self._learn(message.kind, each)
        if message.kind is Kind.RAYJOB:
            self._note_lacked()
        return gone

    def changed(self, message: Changed) -> None:
        uid = message.object["metadata"]["uid"]
        if message.deleted:
            self._objects[message.kind].pop(uid, None)
            self._forget(message.kind, message.object)
        else:
            self._objects[message.kind][uid] = message.object
            self._learn(message.kind, message.object)

    def take_dirty(self, at: datetime) -> list[RunSeen]:
        """The runs that changed, as they are now; asked for when `complete`."""
        runs, self._dirty = sorted(self._dirty & self._sure), set()
        return [self._seen(run, at) for run in runs]

    def run_of(self, kind: Kind, found: KubeObject) -> RunKey | None:
        """The run of an object: by its labels, or its owner's uid where KubeRay gives it none of ours."""
        owners = found["metadata"].get("ownerReferences") or []
        if kind not in _OWNED:
            return run_of(found)
        return next((run for owner in owners if (run := self._uids.run(owner["uid"]))), None)

    def _learn(self, kind: Kind, found: KubeObject) -> None:
        run = self.run_of(kind, found)
        if run is not None:
            uid, of_run = found["metadata"]["uid"], self._by_run.setdefault((kind, run), {})
            self._uids.add(uid, run)
            before, of_run[uid] = of_run.get(uid), found
            if kind is Kind.RAYJOB:
                self._sure.add(run)
            if kind in _NEEDED or kind is Kind.WORKLOAD or (kind is Kind.RAYCLUSTER and _tells_more(before, found)):
                self._dirty.add(run)
        if kind is Kind.RAYJOB:
            self._match_owned()

    def _note_lacked(self) -> None:
        unsure = {run for kind, run in self._by_run if kind is Kind.POD} - self._sure
        twice, self._lacked = unsure & self._lacked, unsure
        self._sure |= twice
        self._dirty |= twice

    def _match_owned(self) -> None:
        """What was listed before the RayJob that owns it."""
        for kind in sorted(_OWNED):
            for uid, found in self._objects[kind].items():
                if self._uids.run(uid) is None:
                    self._learn(kind, found)

    def _forget(self, kind: Kind, found: KubeObject) -> None:
        self._uids.gone(found["metadata"]["uid"])
        run = self.run_of(kind, found)
        if run is None:
            return
        of_run = self._by_run.get((kind, run), {})
        of_run.pop(found["metadata"]["uid"], None)
        if not of_run:
            self._by_run.pop((kind, run), None)
        if kind is Kind.POD:
            self._gone.setdefault(run, []).append(found)
        if kind in _NEEDED:
            self._dirty.add(run)

    def _seen(self, run: RunKey, at: datetime) -> RunSeen:
        rayjob = newest(self._by_run.get((Kind.RAYJOB, run), {}).values())
        pods = list(self._by_run.get((Kind.POD, run), {}).values())
        known = self._machines.get(run, {})
        machines, gone = assign_machines(pods, known), self._gone.pop(run, [])
        self._machines[run] = machines
        if rayjob is None and not pods:
            del self._machines[run]
            self._sure.discard(run)
        raycluster = newest(self._by_run.get((Kind.RAYCLUSTER, run), {}).values())
        workload = newest(self._by_run.get((Kind.WORKLOAD, run), {}).values())
        machines = known | machines
        return run_seen(run, rayjob, pods, machines, at, raycluster=raycluster, gone=gone, workload=workload)


def _tells_more(before: KubeObject | None, after: KubeObject) -> bool:
    """Whether a RayCluster says something new that matters: it changes with every Pod, which is told anyway."""
    return before is None or raycluster_view(before) != raycluster_view(after)


def _version(found: KubeObject) -> str | None:
    version: str | None = found["metadata"].get("resourceVersion")
    return version
