"""Who would have to end for machines to fit."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import add, sub

from starforge.domain.capacity.filling import fitting
from starforge.domain.capacity.nodes import NodeView, Room
from starforge.domain.capacity.packing import Machines, Rooms, place
from starforge.domain.capacity.view import HeldGpus, holders, is_open

_NEVER = datetime.max.replace(tzinfo=UTC)
TRIES_MAX = 20
"""How often it is tried whether some can stay where several kinds of machines share a series, as a try may take half a
second on a thousand nodes. Those who were not asked about then are named, though some of them might stay."""


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
    series = {group.series for group in demand}
    useful = [one for one in leavers if any(where in series for where, _, _ in one.frees)]
    ground = _Freed(demand, rooms)
    if not ground.fits_with(useful):
        return None
    low, high = 0, len(useful)
    while low < high:  # the fewest from the front that do
        middle = (low + high) // 2
        if ground.fits_with(useful[:middle]):
            high = middle
        else:
            low = middle + 1
    ground.end(useful[:high])
    kept = list(ground.needed(useful[:high]))
    ends = [one.until for one in kept]
    known = [end for end in ends if end is not None]
    at = max(known) if known and len(known) == len(ends) else None
    return Ending(tuple(held for one in kept for held in one.held), at)


class _Freed:
    """What is left when some have ended. How many machines of each group would fit alone is kept up to date, so that
    nothing is placed where that says no: there may be thousands who could end."""

    def __init__(self, demand: Sequence[Machines], rooms: Rooms) -> None:
        self._demand, self._before = demand, rooms
        self._is_slow = len({(group.series, group.each) for group in demand}) > len({group.series for group in demand})
        self._tries = 0
        self._start()

    def _start(self) -> None:
        self._rooms = {group.series: dict(self._before.get(group.series, {})) for group in self._demand}
        self._alone = [
            sum(fitting(group.each, room) for room in self._rooms[group.series].values()) for group in self._demand
        ]

    def fits_with(self, leavers: Sequence[Leaver]) -> bool:
        """Whether all fits once these have ended, and nobody else."""
        self.end(leavers)
        return self._fits()

    def end(self, leavers: Sequence[Leaver]) -> None:
        """Have these ended, and nobody else; nobody was asked about yet."""
        self._tries = 0
        self._start()
        for one in leavers:
            self._move(one, add)

    def needed(self, leavers: Sequence[Leaver]) -> Iterator[Leaver]:
        """Of some that have ended those who can't stay; whoever can, alone or as a whole group, stays."""
        if self._tries >= TRIES_MAX:
            yield from leavers
            return
        if not leavers:
            return
        for one in leavers:
            self._move(one, sub)
        if self._fits():
            return
        for one in leavers:
            self._move(one, add)
        half = len(leavers) // 2
        if half == 0:
            yield leavers[0]
            return
        yield from self.needed(leavers[:half])
        yield from self.needed(leavers[half:])

    def _move(self, one: Leaver, change: Callable[[Room, Room], Room]) -> None:
        for series, name, room in one.frees:
            of_series = self._rooms.get(series, {})
            if name in of_series:
                before, after = of_series[name], change(of_series[name], room)
                of_series[name] = after
                for index, group in enumerate(self._demand):
                    if group.series == series:
                        self._alone[index] += fitting(group.each, after) - fitting(group.each, before)

    def _fits(self) -> bool:
        enough_alone = all(alone >= group.count for alone, group in zip(self._alone, self._demand, strict=True))
        self._tries += enough_alone and self._is_slow
        return enough_alone and place(self._demand, self._rooms) is not None
