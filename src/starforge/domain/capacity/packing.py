"""Which machines of some pools have room on which nodes: the scheduler's own arithmetic, for all pools together.

Pools of one kind of machine are placed exactly. Where several kinds share a series, a greedy placement is tried first
and then a search (`filling`), which follows only so many states on large fleets: only then "does not fit" may be wrong,
never "fits".
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from starforge.domain.capacity.filling import fitting, parts, search, times
from starforge.domain.capacity.nodes import NodeView, Room
from starforge.domain.capacity.view import is_open
from starforge.domain.names import JobId
from starforge.domain.quantities import parse_bytes
from starforge.domain.spec import JobSpec


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
        found = _searched(sized, rooms)
    if found is None:
        return None
    places: list[tuple[str, ...]] = [()] * len(groups)
    for index, names in zip(order, found, strict=True):
        places[index] = names
    return places


def _searched(groups: Sequence[Machines], rooms: Mapping[str, Room]) -> list[tuple[str, ...]] | None:
    missing: Counter[Room] = Counter()
    for group in groups:
        missing[group.each] += group.count
    found = search(list(missing), tuple(missing.values()), rooms)
    if found is None:
        return None
    names = {kind: iter(places) for kind, places in zip(missing, found, strict=True)}
    return [tuple(islice(names[group.each], group.count)) for group in groups]


def _exceeds(groups: Sequence[Machines], rooms: Mapping[str, Room]) -> bool:
    """Whether they surely do not fit: one kind of them alone does not, or all of them want more than there is."""
    if any(len(as_many_as_fit(group, rooms)) < group.count for group in groups):
        return True
    wanted = sum((times(group.each, group.count) for group in groups), Room())
    there = sum((Room(*(max(0, part) for part in parts(room))) for room in rooms.values()), Room())
    return not there.holds(wanted)


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
