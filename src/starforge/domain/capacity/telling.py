"""What a fleet that knows all of its nodes tells of them: everything first, and then only what has changed."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from starforge.domain.capacity.nodes import NodesSeen, NodeView


class NodeTeller:
    """Remembers what was told."""

    def __init__(self) -> None:
        self._told: dict[str, NodeView] | None = None

    def tell(self, nodes: Sequence[NodeView], at: datetime) -> Iterator[NodesSeen]:
        """`nodes` are all there are at a time."""
        before, now = self._told, {node.name: node for node in nodes}
        self._told = now
        if before is None:
            yield NodesSeen(at, tuple(nodes), whole=True)
            return
        changed = tuple(node for node in nodes if before.get(node.name) != node)
        gone = tuple(sorted(before.keys() - now.keys()))
        if changed or gone:
            yield NodesSeen(at, changed, gone)
