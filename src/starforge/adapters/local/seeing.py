"""What a run looks like to the domain: its state files in the words that every fleet shares.

Each machine that the spec asks for is shown as a Pod: its share of the one Ray node, which is a process of this one.
"""

import platform
from collections.abc import Mapping
from datetime import UTC, datetime

from starforge.adapters.local.node import Machine
from starforge.adapters.local.rundir import Ending, Phase, RunDir, RunOrder, Status
from starforge.domain.names import JobId, RunKey
from starforge.domain.observation import (
    ContainerRole,
    ContainerState,
    ContainerView,
    PodCondition,
    PodPhase,
    PodRole,
    PodRuntime,
    PodView,
    RunPhase,
    RunSeen,
    Termination,
)
from starforge.domain.reason import ObjectRef
from starforge.domain.stuck_pods import STORE_AWAY
from starforge.domain.teardown import Found, RemainingObject

CONTAINER = "ray-head"
IMAGE = "this machine"
_ENDINGS = {
    Ending.SUCCEEDED: RunPhase.SUCCEEDED,
    Ending.FAILED: RunPhase.FAILED,
    Ending.STOPPED: RunPhase.STOPPED,
}


def run_key(order: RunOrder) -> RunKey:
    return RunKey(JobId(order.job), order.attempt)


def head_pod(order: RunOrder) -> str:
    """Name of the Pod whose container writes head.log."""
    return machine_name(order, order.machines[0])


def seen(order: RunOrder, status: Status | None, at: datetime) -> RunSeen:
    """The run; `status` is None until its supervisor has begun."""
    return RunSeen(
        run=run_key(order),
        phase=_phase(status),
        at=at,
        pods=tuple(_pod(order, machine, status, at) for machine in order.machines),
        uid=order.uid,
        message=status.message if status and status.phase is Phase.ENDED else None,
    )


def found(order: RunOrder, directory: RunDir) -> Found:
    """The run as an object that is there."""
    what = ObjectRef("Directory", str(directory.path), uid=order.uid)
    asked_at = _maybe(directory.removal_asked_at())
    return Found(run_key(order), RemainingObject(what, asked_at), time_of(order.created_at))


def _phase(status: Status | None) -> RunPhase:
    if status is None:
        return RunPhase.WAITING
    # A lost head is told as a Pod that failed under a run that goes on, as on a cluster.
    if status.ending in _ENDINGS:
        return _ENDINGS[status.ending]
    return RunPhase.RUNNING if status.command_at else RunPhase.WAITING


def _pod(order: RunOrder, machine: Machine, status: Status | None, at: datetime) -> PodView:
    is_head = machine == order.machines[0]
    phase = _pod_phase(status)
    return PodView(
        uid=machine_uid(order, machine),
        name=machine_name(order, machine),
        namespace=None,
        runtime=PodRuntime.PROCESS,
        role=PodRole.HEAD if is_head else PodRole.WORKER,
        pool=machine.pool,
        machine=machine.number,
        phase=phase,
        created_at=time_of(order.created_at),
        observed_at=at,
        ready=phase is PodPhase.RUNNING,
        terminating=status is not None and status.phase is Phase.ENDING,
        message=status.message if status else None,
        node_name=node_name(machine.series, order.fleet_gpus),
        gpus=machine.gpus,
        conditions=(_scheduled(status),),
        containers=(_container(status),) if is_head else (),
        scheduled_at=_maybe(status.admitted_at if status else None),
        started_at=_maybe(status.ready_at if status else None),
        finished_at=_maybe(status.ended_at if status else None),
    )


def node_name(series: str, gpus: Mapping[str, int]) -> str:
    """Name of the node of a series, `gpus` being this machine's by series: its own as long as it is one node."""
    return platform.node() if len(gpus) <= 1 else f"{platform.node()}-{series}"


def machine_uid(order: RunOrder, machine: Machine) -> str:
    """Uid of the Pod as which a machine is shown."""
    return f"{order.uid}-{machine.pool}-{machine.number}"


def machine_name(order: RunOrder, machine: Machine) -> str:
    return f"{order.name}-{machine.pool}-{machine.number}"


def _pod_phase(status: Status | None) -> PodPhase:
    if status is None or (status.ending is None and status.ready_at is None):
        return PodPhase.PENDING
    if status.ending is None:
        return PodPhase.RUNNING
    return PodPhase.FAILED if status.ending in (Ending.FAILED, Ending.HEAD_LOST) else PodPhase.SUCCEEDED


def _scheduled(status: Status | None) -> PodCondition:
    if status and status.phase is Phase.QUEUED:
        return PodCondition("PodScheduled", status=False, reason="Unschedulable", message=status.message)
    admitted = status.admitted_at if status else None
    return PodCondition("PodScheduled", status=admitted is not None, changed_at=_maybe(admitted))


def _container(status: Status | None) -> ContainerView:
    running = status is not None and status.ready_at is not None
    started = _maybe(status.ready_at if status else None)
    if status is not None and status.ending is not None:
        code = 0 if status.ending in (Ending.SUCCEEDED, Ending.STOPPED) else 1
        ended = Termination(code, message=status.message, started_at=started, finished_at=_maybe(status.ended_at))
        return ContainerView(CONTAINER, ContainerRole.MAIN, IMAGE, ContainerState.TERMINATED, termination=ended)
    if status is not None and status.phase is Phase.AWAITING_STORE:
        return ContainerView(
            CONTAINER,
            ContainerRole.MAIN,
            IMAGE,
            ContainerState.WAITING,
            waiting_reason=STORE_AWAY,
            waiting_message=status.message,
        )
    state = ContainerState.RUNNING if running else ContainerState.WAITING
    return ContainerView(CONTAINER, ContainerRole.MAIN, IMAGE, state, ready=running, started_at=started)


def time_of(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _maybe(seconds: float | None) -> datetime | None:
    return None if seconds is None else time_of(seconds)
