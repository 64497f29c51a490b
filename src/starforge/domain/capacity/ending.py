"""Who would have to end for machines to fit."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from starforge.domain.capacity.nodes import NodeView, Room
from starforge.domain.capacity.packing import Machines, Rooms, place
from starforge.domain.capacity.view import HeldGpus, holders, is_open

_NEVER = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Leaver:
    """Somebody who holds GPUs, as a whole: all pools of a run end together. `frees` is by series and node."""

    held: tuple[HeldGpus, ...]
    frees: tuple[tuple[str, str, Room], ...]
    until: datetime | None


@dataclass(frozen=True)
class Ending:
    """Those whose end is enough, the soonest first, and when the last of them ends; None if that is not known."""

    held: tuple[HeldGpus, ...]
    at: datetime | None


def who_could_end(views: Iterable[NodeView], until: Callable[[HeldGpus], datetime | None]) -> list[Leaver]:
    """Everybody on nodes that take new Pods: whoever goes already first, then by their clocks."""
    opened = [view for view in views if is_open(view) and view.series is not None]
    held: dict[object, list[HeldGpus]] = defaultdict(list)
    frees: dict[object, list[tuple[str, str, Room]]] = defaultdict(list)
    for one in holders(opened):
        held[one.run or one.playground or one.name].append(one)
    for view in opened:
        for claim in view.claims:
            foreign = f"{claim.namespace}/{claim.name}" if claim.namespace else claim.name
            key = claim.playground or claim.run or foreign
            frees[key].append((view.series or "", view.name, claim.room))
    found = [Leaver(tuple(some), tuple(frees[key]), _latest(some, until)) for key, some in held.items()]
    return sorted(found, key=lambda one: (not one.held[0].releasing, one.until or _NEVER, -one.held[0].gpus))


def _latest(held: Sequence[HeldGpus], until: Callable[[HeldGpus], datetime | None]) -> datetime | None:
    ends = [until(one) for one in held]
    known = [end for end in ends if end is not None]
    return max(known) if len(known) == len(ends) else None


def enough(demand: Sequence[Machines], rooms: Rooms, leavers: Sequence[Leaver]) -> Ending | None:
    """The first of them, without those who make no difference; None if it would not do if all of them ended."""
    low, high = 0, len(leavers)
    if place(demand, _freed(rooms, leavers)) is None:
        return None
    while low < high:  # the fewest from the front that do
        middle = (low + high) // 2
        if place(demand, _freed(rooms, leavers[:middle])) is None:
            low = middle + 1
        else:
            high = middle
    kept = _needed(demand, rooms, list(leavers[:high]))
    ends = [one.until for one in kept]
    known = [end for end in ends if end is not None]
    at = max(known) if known and len(known) == len(ends) else None
    return Ending(tuple(held for one in kept for held in one.held), at)


def _needed(demand: Sequence[Machines], rooms: Rooms, leavers: list[Leaver]) -> list[Leaver]:
    series = {group.series for group in demand}
    kept = [one for one in leavers if any(where in series for where, _, _ in one.frees)]
    for one in [*kept]:
        others = [other for other in kept if other is not one]
        if place(demand, _freed(rooms, others)) is not None:
            kept = others
    return kept


def _freed(rooms: Rooms, leavers: Iterable[Leaver]) -> Rooms:
    left = {series: dict(of_series) for series, of_series in rooms.items()}
    for one in leavers:
        for series, name, room in one.frees:
            if name in left.get(series, {}):
                left[series][name] += room
    return left
