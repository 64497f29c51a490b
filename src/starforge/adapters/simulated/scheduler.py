"""Which node each machine gets: all machines of a run at once, or none until there is room."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from starforge.adapters.simulated.record import Machine, Placement, Record
from starforge.adapters.simulated.timeline import Timeline, timeline
from starforge.adapters.simulated.world import FakeNode, World


@dataclass
class _Room:
    """What is free on a node."""

    node: FakeNode
    gpus: int
    cpus: int

    def fits(self, machine: Machine) -> bool:
        return machine.series == self.node.series and machine.gpus <= self.gpus and machine.cpus <= self.cpus

    def take(self, machine: Machine) -> None:
        self.gpus -= machine.gpus
        self.cpus -= machine.cpus

    def give_back(self, machine: Machine) -> None:
        self.gpus += machine.gpus
        self.cpus += machine.cpus


def place(world: World, records: Iterable[Record], *, after: datetime, until: datetime) -> list[Record]:
    """Runs that get their nodes later than `after` and by `until`, with their placement.

    `records` are all runs of which something was there at some time after `after`, in the order of launch; those with
    nodes have had them by then. Higher priorities go first; a smaller run may pass one that has no room.
    """
    lives = [timeline(world, record) for record in records]
    waiting = sorted(
        (life for life in lives if life.record.placement is None), key=lambda life: -life.record.spec.priority
    )
    rooms = _Rooms(world, (life for life in lives if life.gone_at is None or life.gone_at > after))
    placed = []
    for at in sorted(time for time in _chances(lives, waiting) if after < time <= until):
        rooms.release(at)
        for life in [life for life in waiting if _waits(life, at)]:
            nodes = rooms.take(life)
            if nodes is not None:
                waiting.remove(life)
                placed.append(replace(life.record, placement=Placement(at, nodes)))
    return placed


def _chances(lives: Iterable[Timeline], waiting: Sequence[Timeline]) -> set[datetime]:
    """When a run may get its nodes: as its Pods are made, and as those of another one are gone."""
    if not waiting:
        return set()
    return {life.pods_at for life in waiting} | {life.gone_at for life in lives if life.gone_at is not None}


def _machines(life: Timeline) -> Sequence[Machine]:
    return [machine.machine for machine in life.machines]


def _waits(life: Timeline, at: datetime) -> bool:
    deleted = life.record.deleted_at
    return life.pods_at <= at and (deleted is None or at < deleted)


class _Rooms:
    """The room on all nodes, with who has taken it and until when."""

    def __init__(self, world: World, holders: Iterable[Timeline]) -> None:
        self._rooms = {node.name: _Room(node, node.gpus, node.cpus) for node in world.nodes}
        self._leaving: list[tuple[datetime, Sequence[str], Sequence[Machine]]] = []
        for life in holders:
            if life.record.placement is not None:
                self._hold(life, life.record.placement.nodes)

    def release(self, at: datetime) -> None:
        """Give back what those hold who are gone by `at`."""
        for gone, nodes, held in self._leaving:
            if gone <= at:
                for name, machine in zip(nodes, held, strict=True):
                    if name in self._rooms:
                        self._rooms[name].give_back(machine)
        self._leaving = [entry for entry in self._leaving if entry[0] > at]

    def take(self, life: Timeline) -> tuple[str, ...] | None:
        """Nodes for all machines of a run, or None and nothing taken."""
        nodes = _nodes(list(self._rooms.values()), _machines(life))
        if nodes is not None and life.gone_at is not None:
            self._leaving.append((life.gone_at, nodes, _machines(life)))
        return nodes

    def _hold(self, life: Timeline, nodes: Sequence[str]) -> None:
        held = _machines(life)
        for name, machine in zip(nodes, held, strict=True):
            if name in self._rooms:
                self._rooms[name].take(machine)
        if life.gone_at is not None:
            self._leaving.append((life.gone_at, nodes, held))


def _nodes(rooms: Sequence[_Room], wanted: Sequence[Machine]) -> tuple[str, ...] | None:
    """A node for each machine, the fullest that has room; nothing is taken unless all of them fit."""
    taken: list[tuple[_Room, Machine]] = []
    for machine in wanted:
        fitting = [room for room in rooms if room.fits(machine)]
        if not fitting:
            for room, earlier in taken:
                room.give_back(earlier)
            return None
        best = min(fitting, key=lambda room: (room.gpus, room.cpus, room.node.name))
        best.take(machine)
        taken.append((best, machine))
    return tuple(room.node.name for room, _ in taken)
