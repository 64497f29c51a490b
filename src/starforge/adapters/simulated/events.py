"""Kubernetes Events of a run, as far as they happened by a time, with their counts."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from starforge.adapters.simulated.containers import pull_failed
from starforge.adapters.simulated.picture import made_up_uid, pod_uid, unschedulable
from starforge.adapters.simulated.plan import Outcome
from starforge.adapters.simulated.timeline import MachineLife, Timeline
from starforge.domain.observation import EventSeen
from starforge.domain.reason import ObjectRef

_AGAIN_S = 30.0
_SCHEDULER = "default-scheduler"
_KUBELET = "kubelet"


def events(life: Timeline, until: datetime) -> tuple[EventSeen, ...]:
    """Every Event up to a time, oldest first."""
    found = (event for machine in life.machines for event in _of_machine(life, machine, until))
    return tuple(sorted(found, key=lambda event: (event.first_at, event.last_at)))


def next_repeat(life: Timeline, told: Iterable[EventSeen], now: datetime) -> datetime | None:
    """When the first of some Events comes again; None if none of them does, as those that were over before `now`."""
    repeats = (life.world.after(event.last_at, _AGAIN_S) for event in told if event.warning)
    return min((time for time in repeats if time >= now), default=None)


def _of_machine(life: Timeline, machine: MachineLife, until: datetime) -> Iterator[EventSeen]:
    tell = _Teller(life, machine, until)
    times, image = machine.times, machine.machine.image or "the image"
    if times.created_at is not None and times.created_at != times.scheduled_at:
        why = unschedulable(life, machine)
        yield from tell.repeating("FailedScheduling", why, times.created_at, times.scheduled_at, by=_SCHEDULER)
    assigned = f"Successfully assigned {life.world.namespace}/{machine.pod} to {machine.node}"
    yield from tell.once("Scheduled", assigned, times.scheduled_at, by=_SCHEDULER)
    yield from tell.once("Pulling", f'Pulling image "{image}"', times.scheduled_at)
    if life.plan.outcome is Outcome.IMAGE_PULL:
        yield from tell.repeating("Failed", f"Failed to pull image: {pull_failed(machine)}", times.pulled_at)
        yield from tell.repeating("BackOff", f'Back-off pulling image "{image}"', times.backoff_at)
    else:
        yield from tell.once("Pulled", f'Successfully pulled image "{image}"', times.pulled_at)
    yield from tell.once("Started", f"Started container {machine.container}", times.started_at)
    killed = life.record.deleted_at if times.started_at is not None else None
    yield from tell.once("Killing", f"Stopping container {machine.container}", killed)


class _Teller:
    """Makes Events about one Pod."""

    def __init__(self, life: Timeline, machine: MachineLife, until: datetime) -> None:
        self._life, self._until = life, until
        self._pod = ObjectRef("Pod", machine.pod, life.world.namespace, pod_uid(life, machine))

    def once(self, reason: str, message: str, at: datetime | None, *, by: str = _KUBELET) -> Iterator[EventSeen]:
        if at is not None and at <= self._until:
            yield self._event(reason, message, first=at, last=at, count=1, warning=False, by=by)

    def repeating(
        self, reason: str, message: str, at: datetime | None, ends: datetime | None = None, *, by: str = _KUBELET
    ) -> Iterator[EventSeen]:
        """A warning that comes again and again until it `ends`, or the run is deleted."""
        if at is None or at > self._until:
            return
        last = min(time for time in (self._until, ends, self._life.record.deleted_at) if time is not None)
        times = int((last - at).total_seconds() * self._life.world.speed / _AGAIN_S)
        newest = self._life.world.after(at, times * _AGAIN_S)
        yield self._event(reason, message, first=at, last=newest, count=times + 1, warning=True, by=by)

    def _event(
        self, reason: str, message: str, *, first: datetime, last: datetime, count: int, warning: bool, by: str
    ) -> EventSeen:
        run = self._life.record.run
        uid = made_up_uid(self._life.world, run, f"{self._pod.uid}/{reason}")
        return EventSeen(run, uid, self._pod, reason, warning, message, count, first, last, by)
