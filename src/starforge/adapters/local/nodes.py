"""This machine as the nodes of its fleet: one for each series of GPUs that it has."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from starforge.adapters.local.node import Machine
from starforge.adapters.local.rundir import Phase, RunOrder, Status
from starforge.adapters.local.seeing import machine_name, machine_uid, node_name, run_key, time_of
from starforge.domain.capacity.nodes import Claim, NodeView, Room

Run: TypeAlias = tuple[RunOrder, Status]

# Ray is told how many CPUs and how much memory a run has, and takes the word for it. As nothing here waits for them or
# is refused, they must never be what is lacking, however small the machine is.
_AMPLE = Room(cpu_millis=10**9, memory=2**60, pods=10**6)


def node_views(gpus: Mapping[str, int], runs: Iterable[Run], *, logical: bool) -> Sequence[NodeView]:
    """Every node with the machines of the runs that have their place; `gpus` are those of this machine by series."""
    held: dict[str, list[Claim]] = {series: [] for series in gpus}
    for order, status in runs:
        if status.admitted_at is not None and status.phase is not Phase.ENDED:
            for machine in order.machines:
                if machine.series in held:  # one that needs no GPU may be of a series that is not there
                    held[machine.series].append(_claim(order, machine, status))
    return [_view(node_name(series, gpus), series, gpus[series], held[series], logical=logical) for series in gpus]


def _view(name: str, series: str, gpus: int, claims: Sequence[Claim], *, logical: bool) -> NodeView:
    return NodeView(
        name=name,
        series=series,
        gpus=gpus,
        allocatable=_AMPLE + Room(gpus=gpus),
        used=sum((claim.room for claim in claims), Room()),
        claims=tuple(sorted(claims, key=lambda claim: claim.uid)),
        logical=logical,
    )


def _claim(order: RunOrder, machine: Machine, status: Status) -> Claim:
    return Claim(
        uid=machine_uid(order, machine),
        name=machine_name(order, machine),
        namespace=None,
        room=Room(gpus=machine.gpus, pods=1),
        run=run_key(order),
        pool=machine.pool,
        since=None if status.admitted_at is None else time_of(status.admitted_at),
        releasing=status.phase is Phase.ENDING,
    )
