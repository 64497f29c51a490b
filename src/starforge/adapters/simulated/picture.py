"""A run as it looks at a time: its phase and its Pods, in the words of Kubernetes."""

from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from uuid import NAMESPACE_URL, uuid5

from starforge.adapters.simulated.containers import container_view
from starforge.adapters.simulated.timeline import MachineLife, Timeline
from starforge.adapters.simulated.world import World
from starforge.domain.names import RunKey
from starforge.domain.observation import PodCondition, PodPhase, PodRole, PodRuntime, PodView, RunPhase, RunSeen
from starforge.domain.reason import ObjectRef
from starforge.domain.teardown import RemainingObject


@lru_cache(maxsize=65536)
def made_up_uid(world: World, run: RunKey, what: str) -> str:
    """A uid that is the same in every process."""
    return str(uuid5(NAMESPACE_URL, f"simulated/{world.seed}/{run}/{what}"))


def run_uid(life: Timeline) -> str:
    """The uid of the run itself; another one if the same run is launched at another time."""
    return made_up_uid(life.world, life.record.run, life.record.launched_at.isoformat())


def picture(life: Timeline, now: datetime) -> RunSeen:
    """The run at a time that is not before its launch; ABSENT once everything of it is gone."""
    run = life.record.run
    if life.gone_at is not None and life.gone_at <= now:
        return RunSeen(run, RunPhase.ABSENT, now)
    pods = tuple(pod_view(life, machine, now) for machine in life.machines if is_there(machine, now))
    return RunSeen(run, phase(life, now), now, pods, uid=run_uid(life), message=_message(life, now))


def is_there(machine: MachineLife, now: datetime) -> bool:
    created, gone = machine.times.created_at, machine.times.gone_at
    return created is not None and created <= now and (gone is None or now < gone)


def phase(life: Timeline, now: datetime) -> RunPhase:
    if life.end is not None and life.end.reported_at <= now:
        return life.end.phase
    return RunPhase.RUNNING if life.started_at is not None and life.started_at <= now else RunPhase.WAITING


def same_picture(one: RunSeen | None, other: RunSeen) -> bool:
    """Whether both show the same, whenever they were taken."""
    return one is not None and _undated(one) == _undated(other)


def remaining(life: Timeline, now: datetime) -> tuple[RemainingObject, ...]:
    """Everything of the run that is there at a time."""
    seen = picture(life, now)
    if seen.phase is RunPhase.ABSENT:
        return ()
    deleted, namespace = life.record.deleted_at, life.world.namespace
    run = ObjectRef("SimulatedRun", life.record.name, namespace, seen.uid)
    pods = (ObjectRef("Pod", pod.name, namespace, pod.uid) for pod in seen.pods)
    return tuple(RemainingObject(ref, deletion_requested_at=deleted) for ref in (run, *pods))


def pod_view(life: Timeline, machine: MachineLife, now: datetime) -> PodView:
    times, container = machine.times, container_view(life, machine, now)
    return PodView(
        uid=pod_uid(life, machine),
        name=machine.pod,
        namespace=life.world.namespace,
        runtime=PodRuntime.SIMULATED,
        role=PodRole.HEAD if machine is life.machines[0] else PodRole.WORKER,
        pool=machine.machine.pool,
        machine=machine.machine.number,
        phase=_pod_phase(machine, now, killed=container.termination is not None),
        created_at=times.created_at or now,
        observed_at=now,
        ready=container.ready,
        terminating=_past(life.record.deleted_at, now) is not None,
        node_name=machine.node if _past(times.scheduled_at, now) else None,
        gpus=machine.machine.gpus,
        conditions=_conditions(life, machine, now, ready=container.ready),
        containers=(container,),
        scheduled_at=_past(times.scheduled_at, now),
        started_at=_past(times.started_at, now),
        finished_at=container.termination.finished_at if container.termination else None,
        deletion_requested_at=_past(life.record.deleted_at, now),
    )


def pod_uid(life: Timeline, machine: MachineLife) -> str:
    return made_up_uid(life.world, life.record.run, f"{run_uid(life)}/{machine.pod}")


def unschedulable(life: Timeline, machine: MachineLife) -> str:
    """Why the scheduler has no node for a machine, as Kubernetes says it."""
    nodes = life.world.nodes
    others = sum(node.series != machine.machine.series for node in nodes)
    parts = [f"{others} node(s) didn't match Pod's node affinity/selector"] if others else []
    if others < len(nodes):
        what = "nvidia.com/gpu" if machine.machine.gpus else "cpu"
        parts.insert(0, f"{len(nodes) - others} Insufficient {what}")
    return f"0/{len(nodes)} nodes are available: {', '.join(parts)}."


def _past(time: datetime | None, now: datetime) -> datetime | None:
    return time if time is not None and time <= now else None


def _pod_phase(machine: MachineLife, now: datetime, *, killed: bool) -> PodPhase:
    if killed:
        return PodPhase.FAILED
    return PodPhase.RUNNING if _past(machine.times.started_at, now) else PodPhase.PENDING


def _conditions(life: Timeline, machine: MachineLife, now: datetime, *, ready: bool) -> tuple[PodCondition, ...]:
    times = machine.times
    scheduled = _past(times.scheduled_at, now)
    if scheduled is None:
        why = unschedulable(life, machine)
        return (PodCondition("PodScheduled", False, "Unschedulable", why, changed_at=times.created_at),)
    since = _past(times.ready_at, now) or scheduled
    not_ready = None if ready else "ContainersNotReady"
    return (
        PodCondition("PodScheduled", status=True, changed_at=scheduled),
        PodCondition("Initialized", status=True, changed_at=scheduled),
        PodCondition("ContainersReady", status=ready, reason=not_ready, changed_at=since),
        PodCondition("Ready", status=ready, reason=not_ready, changed_at=since),
    )


def _message(life: Timeline, now: datetime) -> str | None:
    ended = life.end if life.end is not None and life.end.reported_at <= now else None
    if ended is None or ended.phase is not RunPhase.FAILED:
        return None
    if not ended.told:
        return "Unexpected error occurred: The actor died because its node has died."
    return f"Job entrypoint command failed with exit code {ended.exit_code}; the driver's log says more."


def _undated(seen: RunSeen) -> RunSeen:
    pods = tuple(replace(pod, observed_at=pod.created_at) for pod in seen.pods)
    return replace(seen, at=datetime.min, pods=pods)
