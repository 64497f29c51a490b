"""Nodes for tests, made one by one or at random, and counts of them that are slow and written another way."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

from hypothesis import strategies as st

from starforge.domain.capacity.nodes import Claim, FleetNodes, KnownNode, NodeView, Room, Taint
from starforge.domain.capacity.packing import Machines
from starforge.domain.names import JobId, RunKey

AT = datetime(2026, 1, 1, tzinfo=UTC)
PLENTY = Room(0, 64_000, 2**40, 110)
TAINT = Taint("example.com/kept", "yes", "NoSchedule")


def room(gpus: int, cpu: int = 100, memory: int = 1) -> Room:
    return Room(gpus, cpu, memory, 1)


def claim(number: int, gpus: int, *, job: str | None = "job-1", pool: str = "train") -> Claim:
    run = RunKey(JobId(job), 1) if job else None
    return Claim(f"uid-{number}", f"pod-{number}", "ns", room(gpus), run, None, pool if job else None, AT)


def node(name: str, series: str | None = "h200", gpus: int = 8, *claims: Claim, **rest: object) -> NodeView:
    used = sum((one.room for one in claims), Room())
    allocatable = Room(gpus) + PLENTY
    given = {"allocatable": allocatable, "used": used, "claims": claims, **rest}
    return NodeView(name, series, gpus, **given)  # type: ignore[arg-type]


def fleet(*views: NodeView, heard_at: datetime | None = AT) -> FleetNodes:
    return FleetNodes("home", {view.name: KnownNode(view, 1, AT) for view in views}, {}, 1, heard_at)


def machines(pool: str, series: str, count: int, gpus: int, cpu: int = 100) -> Machines:
    return Machines(pool, series, count, room(gpus, cpu))


# --- at random --------------------------------------------------------------------------------------------------------

SERIES = st.sampled_from(["h200", "b200"])


@st.composite
def views(draw: st.DrawFn, most: int = 3) -> list[NodeView]:
    """A few nodes, some of them closed, sick, full or without a label."""
    return [draw(_view(f"node-{number}")) for number in range(draw(st.integers(0, most)))]


@st.composite
def _view(draw: st.DrawFn, name: str) -> NodeView:
    gpus = draw(st.integers(0, 4))
    number = int(name.rpartition("-")[2]) * 10
    held = draw(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["job-1", "job-2", None])), max_size=3))
    claims = tuple(claim(number + index, some, job=job) for index, (some, job) in enumerate(held))
    return node(
        name,
        draw(SERIES | st.none()),
        gpus,
        *claims,
        allocatable=Room(draw(st.integers(0, gpus))) + draw(st.sampled_from([PLENTY, Room(0, 400, 2, 3), Room()])),
        ready=draw(st.sampled_from([True, True, True, False, None])),
        cordoned=draw(st.sampled_from([False, False, True])),
        taints=draw(st.sampled_from([(), (), (TAINT,)])),
    )


@st.composite
def demands(draw: st.DrawFn, most: int = 3) -> list[Machines]:
    one = st.builds(machines, st.sampled_from("abc"), SERIES, st.integers(1, 2), st.integers(0, 3), st.just(100))
    return draw(st.lists(one, min_size=1, max_size=most))


# --- slow -------------------------------------------------------------------------------------------------------------


def is_closed(view: NodeView) -> bool:
    return view.ready is not True or view.cordoned or bool(view.taints)


def open_room(views: Iterable[NodeView]) -> dict[str, tuple[str | None, Room]]:
    return {view.name: (view.series, view.allocatable - view.used) for view in views if not is_closed(view)}


def empty_room(views: Iterable[NodeView]) -> dict[str, tuple[str | None, Room]]:
    return {
        view.name: (view.series, Room(max(view.gpus, view.allocatable.gpus)) + Room(0, *_rest(view.allocatable)))
        for view in views
    }


def _rest(room: Room) -> tuple[int, int, int]:
    return room.cpu_millis, room.memory, room.pods


def each_of(demand: Iterable[Machines]) -> list[Machines]:
    return [group for group in demand for _ in range(group.count)]


def placements(single: Sequence[Machines], rooms: Mapping[str, tuple[str | None, Room]]) -> Iterator[tuple[str, ...]]:
    """Every way to put each machine on a node, by trying all of them one after the other."""
    if not single:
        yield ()
        return
    one, *others = single
    for name, (series, left) in rooms.items():
        if series == one.series and _holds(left - one.each, one.each):
            taken = {**rooms, name: (series, left - one.each)}
            yield from ((name, *more) for more in placements(others, taken))


def _holds(left: Room, each: Room) -> bool:
    """Whether what was taken was there; whoever asks for none of a thing does not care how much of it there is."""
    return all(rest >= 0 for rest, need in zip(_all(left), _all(each), strict=True) if need)


def _all(room: Room) -> tuple[int, int, int, int]:
    return room.gpus, *_rest(room)


def fits(demand: Sequence[Machines], rooms: Mapping[str, tuple[str | None, Room]]) -> bool:
    return next(placements(each_of(demand), rooms), None) is not None


def gpu_by_gpu(view: NodeView) -> list[str]:
    """What becomes of each single GPU of a node: used, free, or the cause that blocks it."""
    there = max(view.gpus, view.used.gpus)
    states = ["used"] * view.used.gpus + ["free"] * (there - view.used.gpus)
    sick = there - min(there, view.allocatable.gpus)
    left = view.allocatable - view.used
    for index in reversed(range(there)):
        if states[index] == "used":
            continue
        if view.ready is not True:
            states[index] = "NOT_READY"
        elif view.cordoned:
            states[index] = "CORDONED"
        elif view.taints:
            states[index] = "TAINTED"
        elif sick > 0:
            states[index], sick = "UNHEALTHY", sick - 1
        elif view.series is None:
            states[index] = "UNLABELLED"
        elif left.pods < 1 or left.cpu_millis < 1 or left.memory < 1:
            states[index] = "OTHER"
    return states
