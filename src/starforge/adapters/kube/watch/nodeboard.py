"""The nodes of the cluster with what is on them, and which of them have changed since they were told."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.views.nodes import claim_view, logical_gpus, node_of, node_view
from starforge.adapters.kube.watch.messages import Changed, Kind, Listed
from starforge.adapters.kube.watch.slimming import slimmed
from starforge.domain.capacity.nodes import Claim, NodesSeen, NodeView

NODE_KINDS = frozenset({Kind.NODE, Kind.CLAIM})
_METADATA = ("name", "uid", "resourceVersion", "labels")
_SPEC, _STATUS = ("unschedulable", "taints"), ("capacity", "allocatable", "conditions")


@dataclass(frozen=True)
class NodeRules:
    """How nodes are read: the label of their series, and the GPUs that each labelled one is taken to have, if any.

    Of runs and playgrounds, only those in `namespace` are ours: another StarForge may have some in the same cluster.
    """

    label: str
    logical: int | None = None
    namespace: str = "starforge"


class NodeBoard:
    """Nothing is told before both kinds were listed and are watched; then all of it, and from then on what changed."""

    def __init__(self, rules: NodeRules) -> None:
        self._rules = rules
        self._nodes: dict[str, KubeObject] = {}
        self._on: dict[str, dict[str, Claim]] = {}
        self._node_of: dict[str, str] = {}
        self._listed: set[Kind] = set()
        self._watched: set[Kind] = set()
        self._dirty: set[str] = set()
        self._told: dict[str, NodeView] = {}
        self._was_told = False

    @property
    def dirty(self) -> bool:
        """Whether there is something to tell."""
        return self._listed & self._watched >= NODE_KINDS and (bool(self._dirty) or not self._was_told)

    def watched(self, kind: Kind, *, well: bool) -> None:
        """Whether changes of a kind are heard of right now."""
        if well:
            self._watched.add(kind)
        else:
            self._watched.discard(kind)

    def listed(self, message: Listed) -> None:
        """Takes a complete list of a kind: what it lacks is gone."""
        self._listed.add(message.kind)
        if message.kind is Kind.NODE:
            found = {each["metadata"]["name"]: each for each in message.objects}
            self._dirty |= self._nodes.keys() | found.keys()
            self._nodes = found
        else:
            for uid in self._node_of.keys() - {each["metadata"]["uid"] for each in message.objects}:
                self._leave(uid)
            for each in message.objects:
                self._put(each)

    def changed(self, message: Changed) -> None:
        metadata = message.object["metadata"]
        if message.kind is Kind.CLAIM:
            if message.deleted:
                self._leave(metadata["uid"])
            else:
                self._put(message.object)
            return
        self._dirty.add(metadata["name"])
        if message.deleted:
            self._nodes.pop(metadata["name"], None)
        else:
            self._nodes[metadata["name"]] = message.object

    def take_dirty(self, at: datetime) -> Iterable[NodesSeen]:
        """What differs from what was told, at most one."""
        if not self.dirty:
            return []
        names, self._dirty = self._dirty, set()
        views = {name: view for name in names if (view := self._view(name)) is not None}
        changed = tuple(view for name, view in sorted(views.items()) if self._told.get(name) != view)
        gone = tuple(sorted((names - views.keys()) & self._told.keys()))
        whole, self._was_told = not self._was_told, True
        for view in changed:
            self._told[view.name] = view
        for name in gone:
            del self._told[name]
        return [NodesSeen(at, changed, gone, whole)] if whole or changed or gone else []

    def _view(self, name: str) -> NodeView | None:
        node = self._nodes.get(name)
        if node is None:
            return None
        claims = self._on.get(name, {}).values()
        return node_view(node, claims, label=self._rules.label, logical=self._rules.logical)

    def _put(self, pod: KubeObject) -> None:
        """Take note of a Pod, as `claimed` left it; one that has no node takes nothing."""
        claim, node = pod["claim"], pod["node"]
        if self._node_of.get(claim.uid) not in (None, node):
            self._leave(claim.uid)
        if node is None:
            return
        if self._rules.logical is not None:
            claim = replace(claim, room=replace(claim.room, gpus=pod["logical"]))
        if claim.namespace != self._rules.namespace:
            claim = replace(claim, run=None, playground=None, pool=None)
        here = self._on.setdefault(node, {})
        if here.get(claim.uid) != claim:
            here[claim.uid], self._node_of[claim.uid] = claim, node
            self._dirty.add(node)

    def _leave(self, uid: str) -> None:
        node = self._node_of.pop(uid, None)
        if node is not None:
            del self._on[node][uid]
            self._dirty.add(node)


def noted(node: KubeObject) -> KubeObject:
    """All that is kept of a node: its annotations, addresses and images are most of it."""
    kept = {"metadata": _METADATA, "spec": _SPEC, "status": _STATUS}
    parts = {part: {name: (node.get(part) or {}).get(name) for name in names} for part, names in kept.items()}
    return slimmed(Kind.NODE, parts)


def claimed(pod: KubeObject) -> KubeObject:
    """All that is kept of a Pod of the cluster, as there are many: what it takes, and of which node."""
    metadata = {name: pod["metadata"].get(name) for name in ("uid", "resourceVersion")}
    return {"metadata": metadata, "claim": claim_view(pod), "node": node_of(pod), "logical": logical_gpus(pod)}
