"""The one container of each Pod, as it looks at a time."""

from datetime import datetime

from starforge.adapters.simulated.timeline import End, MachineLife, Timeline
from starforge.domain.observation import ContainerRole, ContainerState, ContainerView, Termination


def container_view(life: Timeline, machine: MachineLife, now: datetime) -> ContainerView:
    times = machine.times
    died = killed_with(life, machine)
    if died is not None and died.at <= now:
        return _view(machine, ContainerState.TERMINATED, termination=_oom(times.started_at, died))
    if times.started_at is not None and times.started_at <= now:
        ready = times.ready_at is not None and times.ready_at <= now
        return _view(machine, ContainerState.RUNNING, started_at=times.started_at, ready=ready)
    reason, message = _waiting(machine, now)
    return _view(machine, ContainerState.WAITING, waiting_reason=reason, waiting_message=message)


def killed_with(life: Timeline, machine: MachineLife) -> End | None:
    """The end that kills this container, too: the head runs out of memory together with the command."""
    return life.end if life.end is not None and not life.end.told and machine is life.machines[0] else None


def pull_failed(machine: MachineLife) -> str:
    """What a registry says about an image that it does not have."""
    image = machine.machine.image
    return f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": {image}: not found'


def _waiting(machine: MachineLife, now: datetime) -> tuple[str | None, str | None]:
    times = machine.times
    if times.scheduled_at is None or now < times.scheduled_at:
        return None, None
    if times.backoff_at is not None and times.backoff_at <= now:
        return "ImagePullBackOff", f'Back-off pulling image "{machine.machine.image}"'
    if times.backoff_at is not None and times.pulled_at is not None and times.pulled_at <= now:
        return "ErrImagePull", pull_failed(machine)
    return "ContainerCreating", None


def _oom(started_at: datetime | None, end: End) -> Termination:
    return Termination(end.exit_code, signal=9, reason="OOMKilled", started_at=started_at, finished_at=end.at)


def _view(
    machine: MachineLife,
    state: ContainerState,
    *,
    ready: bool = False,
    started_at: datetime | None = None,
    waiting_reason: str | None = None,
    waiting_message: str | None = None,
    termination: Termination | None = None,
) -> ContainerView:
    return ContainerView(
        name=machine.container,
        role=ContainerRole.MAIN,
        image=machine.machine.image or "",
        state=state,
        ready=ready,
        started_at=started_at,
        waiting_reason=waiting_reason,
        waiting_message=waiting_message,
        termination=termination,
    )
