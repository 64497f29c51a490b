"""The nodes of the made-up cluster, with the machines that are on them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime

from starforge.adapters.simulated.picture import pod_uid
from starforge.adapters.simulated.record import Record
from starforge.adapters.simulated.timeline import timeline
from starforge.adapters.simulated.world import FakeNode, World
from starforge.domain.capacity.nodes import Claim, NodeView, Room

# Its scheduler knows GPUs and CPUs alone.
_PLENTY = Room(memory=2**60, pods=10**6)


def node_views(world: World, records: Iterable[Record], at: datetime) -> tuple[NodeView, ...]:
    """Every node as it is at a time."""
    claims: dict[str, list[Claim]] = defaultdict(list)
    for record in records:
        for node, claim in _claims(world, record, at):
            claims[node].append(claim)
    return tuple(_node(node, claims[node.name]) for node in sorted(world.nodes, key=lambda node: node.name))


def _claims(world: World, record: Record, at: datetime) -> Iterator[tuple[str, Claim]]:
    """The machines of a run, from its placement until its last one is gone: so long the scheduler keeps their room."""
    if (placement := record.placement) is None or placement.at > at:
        return
    life = timeline(world, record)
    if life.gone_at is not None and life.gone_at <= at:
        return
    leaves = record.deleted_at is not None and record.deleted_at <= at
    for one, node in zip(life.machines, placement.nodes, strict=True):
        machine = one.machine
        room = Room(gpus=machine.gpus, cpu_millis=machine.cpus * 1000, pods=1)
        yield (
            node,
            Claim(
                uid=pod_uid(life, one),
                name=one.pod,
                namespace=world.namespace,
                room=room,
                run=record.run,
                pool=machine.pool,
                since=placement.at,
                releasing=leaves,
            ),
        )


def _node(node: FakeNode, claims: Iterable[Claim]) -> NodeView:
    here = tuple(sorted(claims, key=lambda claim: claim.uid))
    return NodeView(
        name=node.name,
        series=node.series,
        gpus=node.gpus,
        allocatable=Room(gpus=node.gpus, cpu_millis=node.cpus * 1000) + _PLENTY,
        used=sum((claim.room for claim in here), Room()),
        claims=here,
        logical=True,
    )
