"""Which machines of some pools have room on which nodes: the scheduler's own arithmetic, for all pools together.

Pools of one kind of machine are placed exactly. Where several kinds share a series, a greedy placement is tried first
and then a search over all others, which gives up after STEPS: only then "does not fit" may be wrong, never "fits".
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from starforge.domain.capacity.nodes import NodeView, Room
from starforge.domain.capacity.view import is_open
from starforge.domain.names import JobId
from starforge.domain.quantities import parse_bytes
from starforge.domain.spec import JobSpec

STEPS = 5_000


@dataclass(frozen=True)
class Machines:
    """`count` machines of a pool, each of which needs `each` on one node of `series`."""

    pool: str
    series: str
    count: int
    each: Room
    job: JobId | None = None


def machines_of(spec: JobSpec) -> tuple[Machines, ...]:
    """What a job asks for, pool by pool, in the spec's order."""
    return tuple(
        Machines(
            pool.name,
            pool.series,
            pool.machines,
            Room(pool.gpus_per_machine, pool.cpus * 1000, parse_bytes(pool.memory), 1),
        )
        for pool in spec.pools
    )


Rooms = Mapping[str, Mapping[str, Room]]
"""What is left on each node, by series and name."""
Places = tuple[tuple[str, ...], ...]
"""For each of the demanded groups of machines the nodes they go to, a node once for each machine."""


def open_rooms(views: Iterable[NodeView]) -> Rooms:
    """What new Pods can get right now."""
    return _rooms((view, view.allocatable - view.used) for view in views if is_open(view))


def empty_rooms(views: Iterable[NodeView]) -> Rooms:
    """What there would be if every node were empty, open and healthy."""
    return _rooms((view, empty_room(view)) for view in views)


def empty_room(view: NodeView) -> Room:
    """What a node would give if it were empty and all its GPUs healthy."""
    return Room(max(view.gpus, view.allocatable.gpus), *_others(view.allocatable))


def _others(room: Room) -> tuple[int, int, int]:
    return room.cpu_millis, room.memory, room.pods


def _rooms(found: Iterable[tuple[NodeView, Room]]) -> Rooms:
    rooms: dict[str, dict[str, Room]] = defaultdict(dict)
    for view, room in found:
        if view.series is not None:
            rooms[view.series][view.name] = room
    return rooms


def place(demand: Sequence[Machines], rooms: Rooms) -> Places | None:
    """Where all of the machines could go; None if they can't all be placed."""
    places: list[tuple[str, ...]] = [()] * len(demand)
    for series in {group.series for group in demand}:
        groups = [(index, group) for index, group in enumerate(demand) if group.series == series and group.count]
        found = _pack([group for _, group in groups], rooms.get(series, {}))
        if found is None:
            return None
        for (index, _), names in zip(groups, found, strict=True):
            places[index] = names
    return tuple(places)


def without(rooms: Rooms, demand: Sequence[Machines], places: Places) -> Rooms:
    """What is left once machines are at their places."""
    left = {series: dict(of_series) for series, of_series in rooms.items()}
    for group, names in zip(demand, places, strict=True):
        for name in names:
            left[group.series][name] -= group.each
    return left


def as_many_as_fit(group: Machines, rooms: Mapping[str, Room]) -> tuple[str, ...]:
    """Places of as many of the machines as there is room for, fullest nodes first."""
    places: list[str] = []
    for name, fits in _fullest(group.each, rooms):
        places += [name] * min(fits, group.count - len(places))
        if len(places) == group.count:
            break
    return tuple(places)


def fitting(each: Room, room: Room) -> int:
    """How many machines there is room for."""
    limits = [
        have // need
        for have, need in (
            (room.gpus, each.gpus),
            (room.cpu_millis, each.cpu_millis),
            (room.memory, each.memory),
            (room.pods, each.pods),
        )
        if need > 0
    ]
    return max(0, min(limits, default=0))


def _fullest(each: Room, rooms: Mapping[str, Room]) -> Iterator[tuple[str, int]]:
    counts = ((name, fitting(each, room)) for name, room in rooms.items())
    able = [(name, count) for name, count in counts if count]
    left = {name: (rooms[name].gpus - count * each.gpus, rooms[name].gpus, name) for name, count in able}
    return iter(sorted(able, key=lambda one: left[one[0]]))


def _pack(groups: Sequence[Machines], rooms: Mapping[str, Room]) -> list[tuple[str, ...]] | None:
    order = sorted(range(len(groups)), key=lambda index: _size(groups[index]), reverse=True)
    sized = [groups[index] for index in order]
    found = _greedy(sized, rooms)
    if found is None and len({group.each for group in groups}) > 1 and not _exceeds(groups, rooms):
        found = _Search(sized, rooms).run()
    if found is None:
        return None
    places: list[tuple[str, ...]] = [()] * len(groups)
    for index, names in zip(order, found, strict=True):
        places[index] = names
    return places


def _exceeds(groups: Sequence[Machines], rooms: Mapping[str, Room]) -> bool:
    """Whether they surely do not fit: one kind of them alone does not, or all of them want more than there is."""
    if any(len(as_many_as_fit(group, rooms)) < group.count for group in groups):
        return True
    wanted = sum((_times(group.each, group.count) for group in groups), Room())
    there = sum((Room(*(max(0, part) for part in _parts(room))) for room in rooms.values()), Room())
    return not there.holds(wanted)


def _parts(room: Room) -> tuple[int, int, int, int]:
    return room.gpus, room.cpu_millis, room.memory, room.pods


def _times(room: Room, count: int) -> Room:
    return Room(*(part * count for part in _parts(room)))


def _size(group: Machines) -> tuple[int, int, int]:
    return group.each.gpus, group.each.memory, group.each.cpu_millis


def _greedy(groups: Sequence[Machines], rooms: Mapping[str, Room]) -> list[tuple[str, ...]] | None:
    left, found = dict(rooms), list[tuple[str, ...]]()
    for group in groups:
        names = as_many_as_fit(group, left)
        if len(names) < group.count:
            return None
        for name in names:
            left[name] -= group.each
        found.append(names)
    return found


class _Search:
    """Every placement, machine by machine; nodes with the same room are alike, and no state is entered twice."""

    def __init__(self, groups: Sequence[Machines], rooms: Mapping[str, Room]) -> None:
        self._machines = [(index, group.each) for index, group in enumerate(groups) for _ in range(group.count)]
        self._groups, self._left = len(groups), dict(rooms)
        self._failed: set[tuple[int, tuple[Room, ...]]] = set()
        self._names: list[str] = []
        self._steps = 0

    def run(self) -> list[tuple[str, ...]] | None:
        if len(self._machines) > STEPS or not self._goes_on(0):
            return None
        found: list[list[str]] = [[] for _ in range(self._groups)]
        for (index, _), name in zip(self._machines, self._names, strict=True):
            found[index].append(name)
        return [tuple(names) for names in found]

    def _goes_on(self, at: int) -> bool:
        """Depth first, without recursion, as there may be a thousand machines."""
        choices = [self._choices(at)]
        while choices:
            if len(self._names) == len(self._machines):
                return True
            self._steps += 1
            name = next(choices[-1], None) if self._steps <= STEPS else None
            if name is not None:
                self._put(name)
                choices.append(self._choices(len(self._names)))
                continue
            choices.pop()
            if choices:
                self._failed.add(self._state())
                self._take_back()
        return False

    def _choices(self, at: int) -> Iterator[str]:
        if at >= len(self._machines) or self._state() in self._failed:
            return iter(())
        each, alike = self._machines[at][1], dict[Room, str]()
        for name, room in self._left.items():
            if fitting(each, room):
                alike.setdefault(room, name)
        return iter([name for _, name in sorted(alike.items(), key=lambda one: (one[0].gpus, one[0].memory))])

    def _state(self) -> tuple[int, tuple[Room, ...]]:
        rooms = sorted(self._left.values(), key=lambda room: (room.gpus, room.cpu_millis, room.memory, room.pods))
        return len(self._names), tuple(rooms)

    def _put(self, name: str) -> None:
        self._left[name] -= self._machines[len(self._names)][1]
        self._names.append(name)

    def _take_back(self) -> None:
        name = self._names.pop()
        self._left[name] += self._machines[len(self._names)][1]
