"""Whose turn it is, in a queue where a job goes when all its pools fit, and delays none that is in front of it.

Each job in front that does not go keeps, for those behind, the places of its pools that fit now. Where its pools of a
series do not all fit, every node of that series is closed that could ever hold a machine which somebody in front wants,
also of pools that fit: they may have to go elsewhere than now to leave room for the others. So whatever ends next,
those in front find what they would have found without anybody behind them.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from starforge.domain.capacity.fit import FitVerdict, FleetFit, Ground, Until, after_reserved, is_known, unknown
from starforge.domain.capacity.nodes import FleetNodes, Room
from starforge.domain.capacity.packing import Machines, Places, empty_room, place, without
from starforge.domain.names import JobId


@dataclass(frozen=True)
class Waiting:
    """A job that waits for its turn; `since` is when it came."""

    job: JobId
    name: str
    demand: tuple[Machines, ...]
    priority: int
    since: datetime

    @property
    def gpus(self) -> int:
        return sum(group.count * group.each.gpus for group in self.demand)


@dataclass(frozen=True)
class Turn:
    """What was decided of a job: `admitted`, or its `position` from 1 with the GPUs that those in front ask for.

    `unknown` says that nobody knew enough of the fleet to decide.
    """

    job: JobId
    admitted: bool
    position: int | None
    gpus_ahead: int | None
    estimated_start_at: datetime | None
    decision: str
    unknown: bool = False


def decide(
    waiting: Sequence[Waiting],
    *,
    reserved: Sequence[Machines],
    nodes: FleetNodes | None,
    fleet: str,
    until: Until,
    at: datetime,
) -> tuple[Turn, ...]:
    """A turn for each, in the order of the queue: by priority, then by time, then by id."""
    line = _Line(reserved, nodes, fleet, until, at)
    return tuple(line.next(one) for one in sorted(waiting, key=lambda one: (-one.priority, one.since, one.job)))


class _Line:
    """The queue from its front on. `_open` is what those who go leave, `_rooms` what those in front leave of it."""

    def __init__(
        self, reserved: Sequence[Machines], nodes: FleetNodes | None, fleet: str, until: Until, at: datetime
    ) -> None:
        self._nodes, self._fleet, self._until = nodes, fleet, until
        self._ground = Ground(fleet, nodes) if nodes and is_known(nodes, at) else None
        self._open = self._rooms = after_reserved(self._ground.open, reserved) if self._ground else {}
        self._empty = {view.name: empty_room(view) for view in self._ground.views} if self._ground else {}
        self._judged: dict[tuple[Machines, ...], FleetFit] = {}
        self._front: list[Waiting] = []
        self._kept: dict[str, list[Machines]] = defaultdict(list)
        self._kept_by: dict[str, Waiting] = {}
        self._closed_by: dict[str, Waiting] = {}
        self._too_large: set[tuple[Machines, ...]] = set()

    def next(self, one: Waiting) -> Turn:
        places = self._places(one.demand)
        return self._keep(one, self._fit(one)) if places is None else self._admit(one, places)

    def _places(self, demand: tuple[Machines, ...]) -> Places | None:
        """What found no place once finds none behind others either, as there is only ever less room."""
        if self._ground is None or demand in self._too_large:
            return None
        places = place(demand, self._rooms)
        if places is None:
            self._too_large.add(demand)
        return places

    def _fit(self, one: Waiting) -> FleetFit:
        """Jobs of a sweep ask for the same: it is judged once. Only of the first in line it is told who must end."""
        if self._ground is None:
            return unknown(self._fleet, one.demand, self._nodes)
        if not self._front:
            return self._ground.judged(one.demand, self._open, self._until)
        if one.demand not in self._judged:
            self._judged[one.demand] = self._ground.judged(one.demand, self._open, None)
        return self._judged[one.demand]

    def _admit(self, one: Waiting, places: Places) -> Turn:
        self._rooms = without(self._rooms, one.demand, places)
        self._open = without(self._open, one.demand, places)
        self._judged = {}
        if not self._front:
            return Turn(one.job, True, None, None, None, "All its pools fit now.")
        first = self._front[0].name
        others = f" and {len(self._front) - 1} more" if len(self._front) > 1 else ""
        said = f"All its pools fit now, in room that {first}{others} in front of it can't use."
        return Turn(one.job, True, None, None, None, said)

    def _keep(self, one: Waiting, seen: FleetFit) -> Turn:
        ahead = sum(front.gpus for front in self._front)
        unheard = seen.verdict is FitVerdict.UNKNOWN
        start = seen.latest_start_at
        turn = Turn(one.job, False, len(self._front) + 1, ahead, start, self._why(one, seen), unheard)
        if seen.verdict in (FitVerdict.NOW, FitVerdict.LATER):
            self._keep_places(one)
        self._front.append(one)
        return turn

    def _why(self, one: Waiting, seen: FleetFit) -> str:
        if seen.verdict is not FitVerdict.NOW:
            return seen.message
        keeps = {**self._kept_by, **self._closed_by}
        by = next((keeps[group.series] for group in one.demand if group.series in keeps), None)
        if by is None:
            return seen.message
        what = [f"{group.count * group.each.gpus} {group.series}" for group in by.demand if group.each.gpus]
        waits = f"{' and '.join(what)} GPUs" if what else "its machines"
        return f"It would fit, but that would delay {by.name} in front of it, which waits for {waits}."

    def _keep_places(self, one: Waiting) -> None:
        for series in dict.fromkeys(group.series for group in one.demand):
            wanted = [group for group in one.demand if group.series == series]
            self._kept[series] += wanted
            self._kept_by.setdefault(series, one)
            places = place(wanted, self._rooms)
            if places is None:
                self._closed_by.setdefault(series, one)
                self._close(series)
            else:
                self._rooms = without(self._rooms, wanted, places)

    def _close(self, series: str) -> None:
        """Leave of a series only nodes that could never hold a machine which somebody in front wants."""
        left = self._rooms.get(series, {})
        kinds = {group.each for group in self._kept[series]}
        rest = {name: room for name, room in left.items() if not self._could_hold(name, kinds)}
        self._kept[series] = []  # what is left is of no use to them, so they need not be asked about again
        self._rooms = {**self._rooms, series: rest}

    def _could_hold(self, node: str, kinds: Iterable[Room]) -> bool:
        room = self._empty[node]
        return any(room.holds(each) for each in kinds)
