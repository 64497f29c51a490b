"""The GPUs of a fleet as people see them: for every node and series total = used + free + blocked, with causes."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from starforge.domain.capacity.nodes import Claim, GpuSharing, NodeView, Taint
from starforge.domain.names import PlaygroundId, RunKey


class BlockKind(StrEnum):
    """What blocks GPUs; of several, the first in this order is the cause."""

    NOT_READY = "NOT_READY"
    CORDONED = "CORDONED"
    TAINTED = "TAINTED"
    UNHEALTHY = "UNHEALTHY"
    NO_DEVICES = "NO_DEVICES"
    UNLABELLED = "UNLABELLED"
    OTHER = "OTHER"


class HolderKind(StrEnum):
    JOB = "JOB"
    PLAYGROUND = "PLAYGROUND"
    FOREIGN = "FOREIGN"


_NO_GPUS = {
    GpuSharing.WHOLE: "its device plugin offers no GPUs",
    GpuSharing.MIG: "its GPUs are divided into MIG slices with names of their own, which no job can ask for",
    GpuSharing.TIME_SLICED: "its GPUs are shared in time under another name, which no job can ask for",
    GpuSharing.DYNAMIC_CLAIMS: "its GPUs are handed out by resource claims, which no job makes",
}


@dataclass(frozen=True)
class BlockCause:
    """Why `gpus` of `nodes` can't be had; `since` is the earliest that was seen."""

    cause: BlockKind
    gpus: int
    nodes: int
    message: str
    since: datetime | None = None


@dataclass(frozen=True)
class HeldGpus:
    """What a pool of a run, a playground or a foreign Pod (`name` is its namespace/name) holds, on which nodes.

    `since` is when the first of its Pods was placed; `releasing` says that all of them are asked to go.
    """

    kind: HolderKind
    run: RunKey | None
    playground: PlaygroundId | None
    name: str | None
    pool: str | None
    gpus: int
    nodes: tuple[str, ...]
    since: datetime | None = None
    releasing: bool = False


@dataclass(frozen=True)
class NodeGpus:
    view: NodeView
    total: int
    allocatable: int
    used: int
    free: int
    blocked: int
    causes: tuple[BlockCause, ...]
    holders: tuple[HeldGpus, ...]


@dataclass(frozen=True)
class FreeBlock:
    """`nodes` nodes with `gpus` free GPUs each."""

    gpus: int
    nodes: int


@dataclass(frozen=True)
class SeriesGpus:
    name: str
    labelled: bool
    logical: bool
    total: int
    allocatable: int
    used: int
    free: int
    blocked: int
    largest_free: int
    largest_node: int
    free_blocks: tuple[FreeBlock, ...]
    causes: tuple[BlockCause, ...]
    nodes: tuple[NodeGpus, ...]
    holders: tuple[HeldGpus, ...]


def node_gpus(view: NodeView) -> NodeGpus:
    """The GPUs of one node. Pods may hold more than there are, when devices were lost under them."""
    used = max(0, view.used.gpus)
    total = max(view.gpus, used)
    healthy = min(total, max(0, view.allocatable.gpus))
    causes = tuple(_causes(view, total, used, healthy))
    blocked = sum(cause.gpus for cause in causes)
    return NodeGpus(view, total, healthy, used, total - used - blocked, blocked, causes, holders([view]))


def _causes(view: NodeView, total: int, used: int, healthy: int) -> Iterator[BlockCause]:
    unused = total - used
    whole = _blocks_all(view)
    if whole:
        yield replace(whole, gpus=unused)
        return
    broken = min(unused, total - healthy)
    if broken:
        told = f"{_gpus(broken)} of {view.name} {'is' if broken == 1 else 'are'} there but not healthy."
        yield BlockCause(BlockKind.UNHEALTHY, broken, 1, told)
    if view.series is not None and total == 0 and not view.logical:
        told = f"{view.name} has the label of series {view.series}, but {_NO_GPUS[view.sharing]}."
        yield BlockCause(BlockKind.NO_DEVICES, 0, 1, told)
    rest = unused - broken
    if rest and view.series is None:
        told = f"{view.name} has no series label, so no job can ask for its GPUs."
        yield BlockCause(BlockKind.UNLABELLED, rest, 1, told)
    elif rest and (full := _full(view)):
        yield BlockCause(BlockKind.OTHER, rest, 1, f"{view.name} has {full} left for one more Pod.")


def _blocks_all(view: NodeView) -> BlockCause | None:
    """What keeps every new Pod of ours off the node."""
    if not view.ready:
        state = "is not ready" if view.ready is False else "does not answer"
        said = f": {view.ready_message}" if view.ready_message else "."
        return BlockCause(BlockKind.NOT_READY, 0, 1, f"{view.name} {state}{said}", view.ready_changed_at)
    if view.cordoned:
        return BlockCause(BlockKind.CORDONED, 0, 1, f"{view.name} is cordoned.", view.cordoned_at)
    if view.taints:
        taints = ", ".join(show_taint(taint) for taint in view.taints)
        return BlockCause(BlockKind.TAINTED, 0, 1, f"{view.name} has a taint that jobs do not tolerate: {taints}.")
    return None


def show_taint(taint: Taint) -> str:
    """As kubectl writes it: key=value:effect."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def is_open(view: NodeView) -> bool:
    """Whether new Pods of ours may be put on the node, as far as it is not about room."""
    return _blocks_all(view) is None


def why_closed(view: NodeView) -> str | None:
    """Why new Pods of ours may not be put on the node, as a sentence."""
    cause = _blocks_all(view)
    return cause.message if cause else None


def _full(view: NodeView) -> str | None:
    left = view.allocatable - view.used
    if left.pods <= 0:
        return "no room in its number of Pods"
    if left.cpu_millis <= 0:
        return "no CPU"
    return "no memory" if left.memory <= 0 else None


def _gpus(count: int) -> str:
    return f"{count} GPU{'' if count == 1 else 's'}"


# --- who holds --------------------------------------------------------------------------------------------------------


def holders(views: Iterable[NodeView]) -> tuple[HeldGpus, ...]:
    """Who holds GPUs of some nodes, most GPUs first."""
    held: dict[tuple[object, ...], list[tuple[str, Claim]]] = defaultdict(list)
    for view in views:
        for claim in view.claims:
            if claim.room.gpus > 0:
                held[_whose(claim)].append((view.name, claim))
    return tuple(
        sorted(map(_held, held.values()), key=lambda one: (-one.gpus, one.name or "", str(one.run), one.nodes))
    )


def _whose(claim: Claim) -> tuple[object, ...]:
    if claim.playground:
        return ("playground", claim.playground)
    return ("run", claim.run, claim.pool) if claim.run else ("pod", claim.uid)


def _held(claims: Sequence[tuple[str, Claim]]) -> HeldGpus:
    first = claims[0][1]
    since = [claim.since for _, claim in claims if claim.since]
    kind = HolderKind.PLAYGROUND if first.playground else HolderKind.JOB if first.run else HolderKind.FOREIGN
    foreign = f"{first.namespace}/{first.name}" if first.namespace else first.name
    return HeldGpus(
        kind,
        None if first.playground else first.run,
        first.playground,
        foreign if kind is HolderKind.FOREIGN else None,
        first.pool if kind is HolderKind.JOB else None,
        sum(claim.room.gpus for _, claim in claims),
        tuple(sorted({node for node, _ in claims})),
        min(since, default=None),
        all(claim.releasing for _, claim in claims),
    )


# --- series -----------------------------------------------------------------------------------------------------------


def series_gpus(views: Iterable[NodeView]) -> tuple[SeriesGpus, ...]:
    """Every series of some nodes, in name order."""
    by_name: dict[str, list[NodeGpus]] = defaultdict(list)
    for node in sorted(map(node_gpus, views), key=lambda one: one.view.name):
        by_name[node.view.series_name].append(node)
    return tuple(_series(name, nodes) for name, nodes in sorted(by_name.items()))


def _series(name: str, nodes: Sequence[NodeGpus]) -> SeriesGpus:
    free = Counter(node.free for node in nodes if node.free)
    return SeriesGpus(
        name,
        labelled=all(node.view.series is not None for node in nodes),
        logical=all(node.view.logical for node in nodes),
        total=sum(node.total for node in nodes),
        allocatable=sum(node.allocatable for node in nodes),
        used=sum(node.used for node in nodes),
        free=sum(node.free for node in nodes),
        blocked=sum(node.blocked for node in nodes),
        largest_free=max(free, default=0),
        largest_node=max((node.total for node in nodes), default=0),
        free_blocks=tuple(FreeBlock(gpus, free[gpus]) for gpus in sorted(free, reverse=True)),
        causes=_summed([cause for node in nodes for cause in node.causes]),
        nodes=tuple(nodes),
        holders=holders(node.view for node in nodes),
    )


def _summed(causes: Sequence[BlockCause]) -> tuple[BlockCause, ...]:
    """One cause of each kind, most GPUs first; with several nodes the message is that of the first of them."""
    kinds: dict[BlockKind, list[BlockCause]] = defaultdict(list)
    for cause in causes:
        kinds[cause.cause].append(cause)
    return tuple(sorted((_sum(of_kind) for of_kind in kinds.values()), key=lambda one: (-one.gpus, one.cause)))


def _sum(causes: Sequence[BlockCause]) -> BlockCause:
    since = [cause.since for cause in causes if cause.since]
    others = len(causes) - 1
    also = f" {others} other node{' is' if others == 1 else 's are'} blocked alike." if others else ""
    message = causes[0].message + also
    return BlockCause(causes[0].cause, sum(one.gpus for one in causes), len(causes), message, min(since, default=None))
