"""The nodes of fleets: written as they change, and read as what changed since they were read last."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from starforge.adapters.store.statements import upsert
from starforge.adapters.store.tables import CAPACITY, NODE, OBSERVER
from starforge.domain.capacity.nodes import FleetNodes, KnownNode
from starforge.domain.changes import NodesWrite

Stamp = tuple[int, datetime]
"""Position and time of what was seen last: a database that was set back to a backup may give a position once more."""


def write(connection: Connection, one: NodesWrite, position: int) -> None:
    """Store what was seen at the position of its row of the feed; which nodes are gone is told, not found out."""
    stamp = {"fleet": one.fleet, "position": position, "seen_at": one.seen.at}
    rows: list[Mapping[str, Any]] = [{**stamp, "name": node.name, "document": node} for node in one.seen.nodes]
    rows += [{**stamp, "name": name, "document": None} for name in one.seen.gone]
    if rows:
        connection.execute(upsert(connection, NODE), sorted(rows, key=lambda row: row["name"]))
    connection.execute(upsert(connection, CAPACITY), stamp)


class NodeCache:
    """Of one store: nodes that were read before, so that only those that changed are read and parsed again."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Stamp, FleetNodes]] = {}
        self._lock = threading.Lock()

    def fleet_nodes(self, connection: Connection, fleet: str) -> FleetNodes | None:
        with self._lock:  # also while it reads, so that nobody is told less than was told before
            row = connection.execute(_NEWEST, {"fleet": fleet}).first()
            if row is None:
                return None
            stamp = row.position, row.seen_at
            before, known = self._known.get(fleet, (None, FleetNodes(fleet, {}, {}, 0, None)))
            if before != stamp:
                known = _read(connection, known, row.position)
            known = replace(known, heard_at=row.heard_at)
            self._known[fleet] = stamp, known
            return known


_NEWEST = (
    select(CAPACITY.c.position, CAPACITY.c.seen_at, OBSERVER.c.heard_at)
    .select_from(CAPACITY.outerjoin(OBSERVER, OBSERVER.c.fleet == CAPACITY.c.fleet))
    .where(CAPACITY.c.fleet == bindparam("fleet"))
)


def _read(connection: Connection, known: FleetNodes, position: int) -> FleetNodes:
    """What is known and what was written since; all of it if the two are not the same story."""
    total = select(func.count(), func.coalesce(func.sum(NODE.c.position), 0)).where(NODE.c.fleet == known.fleet)
    count, positions = connection.execute(total).one()
    found = _read_on(connection, known, position)
    told = [*(node.position for node in found.nodes.values()), *found.gone.values()]
    if (len(told), sum(told)) == (count, positions):
        return found
    return _read_on(connection, FleetNodes(known.fleet, {}, {}, 0, None), position)


def _read_on(connection: Connection, known: FleetNodes, position: int) -> FleetNodes:
    nodes, gone = dict(known.nodes), dict(known.gone)
    changed = (NODE.c.fleet == known.fleet) & (NODE.c.position > known.position)
    for row in connection.execute(select(NODE).where(changed)):
        position = max(position, row.position)
        nodes.pop(row.name, None)
        gone.pop(row.name, None)
        if row.document is None:
            gone[row.name] = row.position
        else:
            nodes[row.name] = KnownNode(row.document, row.position, row.seen_at)
    return replace(known, nodes=dict(sorted(nodes.items())), gone=gone, position=position)
