"""Takes in what a fleet tells of its nodes: only what differs from what is stored is written, and told in one row."""

from collections.abc import Iterable
from dataclasses import dataclass

from starforge.domain.actions.apply import apply
from starforge.domain.capacity.nodes import FleetNodes, NodesSeen, NodeView
from starforge.domain.changes import Changes, NodesWrite, Watcher
from starforge.domain.observation import Seen
from starforge.domain.ports import Ports


@dataclass
class _Nodes:
    """What is known after some messages: all there is if `whole`, else what is new, and what is gone."""

    nodes: dict[str, NodeView]
    gone: set[str]
    whole: bool = False

    def take(self, seen: NodesSeen) -> None:
        if seen.whole:
            self.nodes, self.gone, self.whole = {}, set(), True
        for name in seen.gone:
            self.nodes.pop(name, None)
            self.gone.add(name)
        for node in seen.nodes:
            self.nodes[node.name] = node
            self.gone.discard(node.name)


def see_nodes(ports: Ports, batch: Iterable[Seen], watcher: Watcher | None) -> None:
    """Write what a batch says of nodes; safe to repeat. Superseded, StoreUnavailable."""
    told = [seen for seen in batch if isinstance(seen, NodesSeen)]
    if not told:
        return
    now = _Nodes({}, set())
    for seen in told:
        now.take(seen)
    fleet = ports.fleet.name
    write = _difference(fleet, now, told[-1], ports.store.fleet_nodes(fleet))
    if write is not None:
        apply(ports, Changes(nodes=[write], watcher=watcher))


def _difference(fleet: str, now: _Nodes, last: NodesSeen, known: FleetNodes | None) -> NodesWrite | None:
    """What is not stored yet; None if nothing. A fleet without nodes is noted, as that is not the same as unknown."""
    before = known.nodes if known else {}
    changed = [node for node in now.nodes.values() if node.name not in before or before[node.name].view != node]
    gone = (before.keys() - now.nodes.keys()) if now.whole else (now.gone & before.keys())
    if known is not None and not changed and not gone:
        return None
    return NodesWrite(fleet, NodesSeen(last.at, tuple(changed), tuple(sorted(gone))))
