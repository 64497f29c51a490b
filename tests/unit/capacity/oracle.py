"""Fleets where CPU, memory and Pods run out as well as GPUs, and a slow search that says whether machines fit there."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import cache

from hypothesis import strategies as st

from starforge.domain.capacity.nodes import Claim, NodeView, Room
from starforge.domain.capacity.packing import Machines
from starforge.domain.names import JobId, RunKey
from tests.unit.capacity.grounds import AT, TAINT

Amounts = tuple[int, int, int, int]
"""GPUs, CPU, memory and Pods."""
Left = tuple[tuple[str | None, Amounts], ...]
"""The series of each node and what is left there."""
HOLDERS = ("job-1", "job-2", "job-3")
SERIES = st.sampled_from(["h200", "b200"])


# --- at random --------------------------------------------------------------------------------------------------------

eaches = st.builds(Room, st.integers(0, 5), st.integers(1, 4), st.integers(1, 3), st.just(1))
allocatables = st.builds(Room, st.integers(0, 9), st.integers(0, 9), st.integers(0, 7), st.integers(0, 5))


@st.composite
def demands(draw: st.DrawFn, most: int = 3, machines: int = 4) -> list[Machines]:
    """Some pools that want few machines in all, so that everything can be tried."""
    counts = draw(st.lists(st.integers(1, machines), min_size=1, max_size=most).filter(lambda all_: sum(all_) <= 6))
    return [Machines(f"pool-{index}", draw(SERIES), count, draw(eaches)) for index, count in enumerate(counts)]


@st.composite
def nodes(draw: st.DrawFn, most: int = 3, *, closed: bool = True) -> list[NodeView]:
    return [_node(draw, f"node-{number}", closed) for number in range(draw(st.integers(1, most)))]


def _node(draw: st.DrawFn, name: str, closed: bool) -> NodeView:
    allocatable, left, claims = draw(allocatables), Room(), []
    left = allocatable
    for index, each in enumerate(draw(st.lists(eaches, max_size=2))):
        if left.holds(each):
            left -= each
            claims.append(a_claim(f"{name}-{index}", each, draw(st.sampled_from([*HOLDERS, None]))))
    shut = draw(st.sampled_from(["", "", "", "ready", "cordoned", "taints"])) if closed else ""
    return NodeView(
        name,
        draw(SERIES),
        allocatable.gpus + draw(st.sampled_from([0, 0, 1])),
        allocatable,
        allocatable - left,
        tuple(claims),
        ready=shut != "ready",
        cordoned=shut == "cordoned",
        taints=(TAINT,) if shut == "taints" else (),
    )


def a_claim(uid: str, room: Room, job: str | None) -> Claim:
    run = RunKey(JobId(job), 1) if job else None
    return Claim(uid, uid, "ns", room, run, None, "train" if job else None, AT)


# --- slow -------------------------------------------------------------------------------------------------------------


def left_now(views: Iterable[NodeView]) -> Left:
    open_ = (view for view in views if view.ready and not view.cordoned and not view.taints)
    return tuple((view.series, amounts(view.allocatable - view.used)) for view in open_)


def left_if_empty(views: Iterable[NodeView]) -> Left:
    return tuple(
        (view.series, (max(view.gpus, view.allocatable.gpus), *amounts(view.allocatable)[1:])) for view in views
    )


def amounts(room: Room) -> Amounts:
    return room.gpus, room.cpu_millis, room.memory, room.pods


def can_place(demand: Iterable[Machines], left: Left) -> bool:
    """Try each machine on each node, one after the other."""
    return _tried(tuple((group.series, amounts(group.each)) for group in demand for _ in range(group.count)), left)


@cache
def _tried(single: tuple[tuple[str, Amounts], ...], left: Left) -> bool:
    if not single:
        return True
    (series, need), others = single[0], single[1:]
    for index, (where, have) in enumerate(left):
        if where == series and all(some >= wanted for some, wanted in zip(have, need, strict=True) if wanted):
            rest = tuple(some - wanted for some, wanted in zip(have, need, strict=True))
            if _tried(others, (*left[:index], (where, rest), *left[index + 1 :])):
                return True
    return False


def most_of(group: Machines, left: Left) -> int:
    """How many machines of one pool can be placed."""
    return max(count for count in range(group.count + 1) if can_place([replace(group, count=count)], left))


def ended(views: Sequence[NodeView], gone: Collection[str]) -> list[NodeView]:
    """The nodes after some jobs have ended."""
    return [_ended(view, gone) for view in views]


def _ended(view: NodeView, gone: Collection[str]) -> NodeView:
    going = [one for one in view.claims if one.run and one.run.job in gone]
    stay = tuple(one for one in view.claims if one not in going)
    return replace(view, claims=stay, used=view.used - sum((one.room for one in going), Room()))
