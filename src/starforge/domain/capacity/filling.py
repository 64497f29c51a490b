"""The search for a placement of several kinds of machines: node by node, by every way to fill each."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from starforge.domain.capacity.nodes import Room

STEPS = 20_000
"""How many states are looked at, shared among the nodes: with N nodes and F ways to fill one, the STEPS / (N * F) best
are followed. Where fewer differ, which is so on all but large fleets of many kinds, the answer is exact."""
FILLINGS = 256

Counts = tuple[int, ...]
"""Machines of each kind."""


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


def parts(room: Room) -> tuple[int, int, int, int]:
    """Its numbers, to calculate with."""
    return room.gpus, room.cpu_millis, room.memory, room.pods


def times(room: Room, count: int) -> Room:
    """What `count` such machines take."""
    return Room(*(part * count for part in parts(room)))


@dataclass(frozen=True)
class _Step:
    """A node was filled, and before that so many machines were missing."""

    before: Counts
    name: str


def search(kinds: Sequence[Room], missing: Counts, rooms: Mapping[str, Room]) -> list[list[str]] | None:
    """Nodes for each kind, of which so many are missing, a node once for each machine; None if none were found."""
    able = (name for name, room in rooms.items() if any(fitting(kind, room) for kind in kinds))
    nodes = sorted(able, key=lambda name: (parts(rooms[name]), name))
    ways = {room: list(_fillings(kinds, missing, room)) for room in {rooms[name] for name in nodes}}
    width = max(1, STEPS // max(1, sum(len(ways[rooms[name]]) for name in nodes)))
    reach = _reach(kinds, [rooms[name] for name in nodes])
    none, states, taken = (0,) * len(kinds), {missing}, list[dict[Counts, _Step]]()
    for index, name in enumerate(nodes):
        taken.append(_fill(name, states, ways[rooms[name]], reach[index + 1]))
        if none in taken[-1]:
            return _traced(taken, none)
        states = set(sorted(taken[-1], key=lambda counts: _weight(kinds, counts))[:width])
    return None


def _fillings(kinds: Sequence[Room], missing: Counts, room: Room) -> Iterator[Counts]:
    """Ways to fill a node so that no missing machine has room beside the others, FILLINGS tried at most."""
    for counts, rest in islice(_ways(kinds, missing, room), FILLINGS):
        wanted = (kind for kind, count, most in zip(kinds, counts, missing, strict=True) if count < most)
        if any(counts) and not any(fitting(kind, rest) for kind in wanted):
            yield counts


def _ways(kinds: Sequence[Room], missing: Counts, room: Room) -> Iterator[tuple[Counts, Room]]:
    if not kinds:
        yield (), room
        return
    most = min(missing[0], fitting(kinds[0], room))
    for count in range(most, -1, -1):
        for others, rest in _ways(kinds[1:], missing[1:], room - times(kinds[0], count)):
            yield (count, *others), rest


def _reach(kinds: Sequence[Room], rooms: Sequence[Room]) -> list[Counts]:
    """How many machines of each kind the nodes from each on could take at most."""
    found = [(0,) * len(kinds)]
    for room in reversed(rooms):
        found.append(tuple(have + fitting(kind, room) for have, kind in zip(found[-1], kinds, strict=True)))
    return found[::-1]


def _fill(name: str, states: set[Counts], ways: Sequence[Counts], reach: Counts) -> dict[Counts, _Step]:
    """What may be missing after a node, as far as the nodes behind it could still take that."""
    found: dict[Counts, _Step] = {}
    for before in states:
        for way in ways:
            after = tuple([max(0, has - some) for has, some in zip(before, way, strict=True)])
            if after not in found and all(has <= most for has, most in zip(after, reach, strict=True)):
                found[after] = _Step(before, name)
    return found


def _weight(kinds: Sequence[Room], missing: Counts) -> tuple[tuple[int, ...], Counts]:
    return parts(sum((times(kind, count) for kind, count in zip(kinds, missing, strict=True)), Room())), missing


def _traced(taken: Sequence[dict[Counts, _Step]], missing: Counts) -> list[list[str]]:
    found: dict[int, list[str]] = defaultdict(list)
    for steps in reversed(taken):
        step = steps[missing]
        for kind, (before, after) in enumerate(zip(step.before, missing, strict=True)):
            found[kind] += [step.name] * (before - after)
        missing = step.before
    return [found[kind] for kind in range(len(missing))]
