"""Whether and when machines find their places, in words: what a form, a refused job and a waiting job are told."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cached_property

from starforge.domain.capacity.ending import Ending, enough, who_could_end
from starforge.domain.capacity.nodes import FleetNodes
from starforge.domain.capacity.packing import (
    Machines,
    Rooms,
    as_many_as_fit,
    empty_rooms,
    open_rooms,
    place,
    without,
)
from starforge.domain.capacity.view import HeldGpus, SeriesGpus, series_gpus, why_closed
from starforge.domain.capacity.words import machines_in_words, room_now, why_never

UNKNOWN_AFTER = timedelta(seconds=60)
"""What was heard longer ago says nothing about now."""
MUST_END_MAX = 20
CLOSED_TOLD = 3
Until = Callable[[HeldGpus], datetime | None]


class FitVerdict(StrEnum):
    NOW = "NOW"
    LATER = "LATER"
    NEVER = "NEVER"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True)
class PoolFit:
    """`placeable` machines have a place now, with the pools before it placed; `nodes` are where they would go."""

    pool: str
    verdict: FitVerdict
    message: str
    placeable: int
    nodes: tuple[str, ...]


@dataclass(frozen=True)
class FleetFit:
    """The verdict for a fleet. `must_end` are those whose end would be enough, soonest first; empty unless LATER.

    `latest_start_at` is when it would fit if everybody kept to their clocks; None if that can't be told.
    """

    fleet: str
    verdict: FitVerdict
    message: str
    observed_at: datetime | None
    pools: tuple[PoolFit, ...]
    must_end: tuple[HeldGpus, ...] = ()
    latest_start_at: datetime | None = None


def fit(
    fleet: str,
    demand: Sequence[Machines],
    nodes: FleetNodes | None,
    *,
    reserved: Sequence[Machines] = (),
    until: Until,
    at: datetime,
) -> FleetFit:
    """Whether `demand` fits. `reserved` had their turn before and have no Pod on a node yet, so they come first."""
    if nodes is None or not is_known(nodes, at):
        return unknown(fleet, demand, nodes)
    ground = Ground(fleet, nodes)
    return ground.judged(demand, after_reserved(ground.open, reserved), until)


def is_known(nodes: FleetNodes | None, at: datetime) -> bool:
    """Whether a fleet was heard lately enough to say anything about now."""
    return nodes is not None and nodes.heard_at is not None and at - nodes.heard_at <= UNKNOWN_AFTER


def unknown(fleet: str, demand: Sequence[Machines], nodes: FleetNodes | None) -> FleetFit:
    heard = nodes.heard_at if nodes else None
    since = f" since {heard.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if heard else " so far"
    message = f"Fleet {fleet} was not heard{since}, so nobody can say whether it has room."
    pools = tuple(PoolFit(each.pool, FitVerdict.UNKNOWN, message, 0, ()) for each in demand)
    return FleetFit(fleet, FitVerdict.UNKNOWN, message, heard, pools)


class Ground:
    """The nodes of a fleet, to judge many demands on: what is counted of them is counted once."""

    def __init__(self, fleet: str, nodes: FleetNodes) -> None:
        self._fleet, self._nodes = fleet, nodes
        self.views = list(nodes.views)
        self.open = open_rooms(self.views)
        self._empty = empty_rooms(self.views)

    @cached_property
    def _series(self) -> Mapping[str, SeriesGpus]:
        return {one.name: one for one in series_gpus(self.views)}

    def judged(self, demand: Sequence[Machines], rooms: Rooms, until: Until | None) -> FleetFit:
        """The verdict where `rooms` are left; who must end is only looked for if `until` is given."""
        if place(demand, self._empty) is None:
            return self._told(FitVerdict.NEVER, tuple(self._never(demand, rooms)))
        pools = tuple(self._pools(demand, rooms))
        if all(pool.verdict is FitVerdict.NOW for pool in pools):
            return self._told(FitVerdict.NOW, pools)
        told = self._told(FitVerdict.LATER, pools)
        short = next((pool for pool in pools if pool.verdict is FitVerdict.LATER), None)
        told = replace(told, message=short.message if short else "Its pools do not fit together now.")
        if until is None:
            return told
        return self._with_ending(told, demand, enough(demand, rooms, who_could_end(self.views, until)))

    def _told(self, verdict: FitVerdict, pools: Sequence[PoolFit]) -> FleetFit:
        if verdict is FitVerdict.NOW:
            message = "All pools fit now." if len(pools) > 1 else pools[0].message
        else:
            message = " ".join(pool.message for pool in pools if pool.verdict is verdict)
        return FleetFit(self._fleet, verdict, message, self._nodes.heard_at, tuple(pools))

    def _never(self, demand: Sequence[Machines], rooms: Rooms) -> Iterator[PoolFit]:
        alone = [place([group], self._empty) is not None for group in demand]
        for group, fits_alone in zip(demand, alone, strict=True):
            if not fits_alone:
                yield PoolFit(group.pool, FitVerdict.NEVER, why_never(group, self.views), 0, ())
            elif all(alone):
                said = f"Pool {group.pool} and the others do not fit together, even if fleet {self._fleet} were empty."
                yield PoolFit(group.pool, FitVerdict.NEVER, said, 0, ())
            else:
                yield self._pool(group, rooms)

    def _pools(self, demand: Sequence[Machines], rooms: Rooms) -> Iterator[PoolFit]:
        together = place(demand, rooms)
        for index, group in enumerate(demand):
            if together is not None:
                said = f"{machines_in_words(group)}, which fit{'s' if group.count == 1 else ''} now."
                yield PoolFit(group.pool, FitVerdict.NOW, said, group.count, _once(together[index]))
                continue
            yield self._pool(group, rooms)
            names = as_many_as_fit(group, rooms.get(group.series, {}))
            rooms = without(rooms, [group], (names,))

    def _pool(self, group: Machines, rooms: Rooms) -> PoolFit:
        names = as_many_as_fit(group, rooms.get(group.series, {}))
        if len(names) == group.count:
            said = f"{machines_in_words(group)}, which would fit now."
            return PoolFit(group.pool, FitVerdict.NOW, said, len(names), _once(names))
        free = room_now(group, self._series.get(group.series), rooms.get(group.series, {}))
        said = f"{machines_in_words(group)}: {len(names)} of {group.count} can be placed now ({free})."
        return PoolFit(group.pool, FitVerdict.LATER, said, len(names), _once(names))

    def _with_ending(self, told: FleetFit, demand: Sequence[Machines], ending: Ending | None) -> FleetFit:
        if ending is not None:
            return replace(told, must_end=ending.held[:MUST_END_MAX], latest_start_at=ending.at)
        series = {group.series for group in demand}
        closed = [why for view in self.views if view.series in series and (why := why_closed(view))]
        new = [why for why in closed if why.rstrip(".") not in told.message]
        return replace(told, message=" ".join([told.message, *new[:CLOSED_TOLD]]))


def after_reserved(rooms: Rooms, reserved: Sequence[Machines]) -> Rooms:
    """What is left when those who come first are placed, as many of them as can be."""
    together = place(reserved, rooms)
    if together is not None:
        return without(rooms, reserved, together)
    for group in reserved:
        rooms = without(rooms, [group], (as_many_as_fit(group, rooms.get(group.series, {})),))
    return rooms


def _once(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
