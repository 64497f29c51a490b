"""The life of a run in times: what has happened and what will, as long as nobody interferes again."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from datetime import datetime
from functools import cached_property, lru_cache
from typing import cast

from starforge.adapters.simulated.plan import MachinePlan, Outcome, Plan, plan
from starforge.adapters.simulated.record import Machine, Record, machines
from starforge.adapters.simulated.world import World
from starforge.domain.observation import RunPhase

_REPORT_S = 0.3
_BACKOFF_S = 2.0


@dataclass(frozen=True)
class MachineTimes:
    """When the Pod of a machine reached each step; None for what will not happen. A pull may fail at `pulled_at`."""

    created_at: datetime | None = None
    scheduled_at: datetime | None = None
    pulled_at: datetime | None = None
    backoff_at: datetime | None = None
    started_at: datetime | None = None
    ready_at: datetime | None = None
    gone_at: datetime | None = None


@dataclass(frozen=True)
class MachineLife:
    machine: Machine
    pod: str
    container: str
    node: str | None
    times: MachineTimes


@dataclass(frozen=True)
class End:
    """How the command ends. `told` is False if the runner died with it, so that nothing says so in its stream."""

    at: datetime
    reported_at: datetime
    phase: RunPhase
    exit_code: int
    signal: int | None = None
    told: bool = True


@dataclass(frozen=True)
class Timeline:
    """A life. `pods_at` is when its Pods are made, if it was not deleted before; `started_at` is the command's.

    `gone_at` is when the last of it is removed, None as long as nobody asks.
    """

    world: World
    record: Record
    plan: Plan
    machines: tuple[MachineLife, ...]
    pods_at: datetime
    started_at: datetime | None
    end: End | None
    gone_at: datetime | None

    @cached_property
    def changes(self) -> tuple[datetime, ...]:
        """Every time at which its picture changes, in order."""
        return tuple(sorted(set(self._changes())))

    def _changes(self) -> Iterator[datetime]:
        yield self.record.launched_at
        ends = (self.end.at, self.end.reported_at) if self.end else ()
        for time in (self.started_at, *ends, self.record.deleted_at, self.gone_at):
            if time is not None:
                yield time
        for life in self.machines:
            yield from (time for _, time in _known(life.times))


@lru_cache(maxsize=4096)
def timeline(world: World, record: Record) -> Timeline:
    """The life of a run as its record has it; a new entry in that changes nothing before the entry's own time."""
    made = plan(world, record.run, record.spec)
    lives = tuple(_lives(world, record, made))
    deleted = record.deleted_at
    started = _driver_start(world, made, lives)
    if started is not None and deleted is not None and started > deleted:
        started = None
    goes = [life.times.gone_at for life in lives if life.times.gone_at is not None]
    gone = max(goes, default=world.after(deleted, _REPORT_S)) if deleted is not None else None
    pods_at = world.after(record.launched_at, made.create_s)
    return Timeline(world, record, made, lives, pods_at, started, _end(world, record, made, started), gone)


def _lives(world: World, record: Record, made: Plan) -> Iterator[MachineLife]:
    nodes = record.placement.nodes if record.placement else ()
    for index, machine in enumerate(machines(record.spec)):
        pod = f"{record.name}-head" if index == 0 else f"{record.name}-{machine.pool}-{machine.number}"
        container = "ray-head" if index == 0 else "ray-worker"
        node = nodes[index] if nodes else None
        yield MachineLife(machine, pod, container, node, _machine_times(world, record, made, made.machines[index]))


def _machine_times(world: World, record: Record, made: Plan, machine: MachinePlan) -> MachineTimes:
    created = world.after(record.launched_at, made.create_s)
    times = MachineTimes(created_at=created)
    if record.placement is not None:
        times = _placed(world, created, record.placement.at, made, machine)
    deleted = record.deleted_at
    if deleted is None:
        return times
    kept = {name: time for name, time in _known(times) if time <= deleted}
    gone = world.after(deleted, machine.go_s) if "created_at" in kept else None
    return MachineTimes(**kept, gone_at=gone)


def _placed(world: World, created: datetime, at: datetime, made: Plan, machine: MachinePlan) -> MachineTimes:
    pulled = world.after(at, machine.pull_s)
    if made.outcome is Outcome.IMAGE_PULL:
        return MachineTimes(created, at, pulled, backoff_at=world.after(pulled, _BACKOFF_S))
    started = world.after(pulled, machine.start_s)
    return MachineTimes(created, at, pulled, started_at=started, ready_at=world.after(started, machine.ready_s))


def _driver_start(world: World, made: Plan, lives: tuple[MachineLife, ...]) -> datetime | None:
    ready = [life.times.ready_at for life in lives if life.times.ready_at is not None]
    return world.after(max(ready), made.driver_s) if len(ready) == len(lives) else None


def _end(world: World, record: Record, made: Plan, started: datetime | None) -> End | None:
    if started is None:
        return None
    ends = [*_natural_end(world, made, started), *_stopped(world, record, made)]
    if record.deleted_at is not None:
        ends.append(_killed(world, record.deleted_at, signal=15))
    return min(ends, key=lambda end: end.at, default=None)


def _natural_end(world: World, made: Plan, started: datetime) -> Iterator[End]:
    if made.last_step is None:
        return
    at = world.after(started, (made.last_step + 0.5) * made.step_s)
    phase = RunPhase.SUCCEEDED if made.outcome is Outcome.SUCCEED else RunPhase.FAILED
    yield End(at, world.after(at, _REPORT_S), phase, made.exit_code, told=made.outcome is not Outcome.OOM)


def _stopped(world: World, record: Record, made: Plan) -> Iterator[End]:
    if record.stop is None:
        return
    yield _killed(world, record.stop.kill_at, signal=9)
    if not made.ignores_sigterm:
        yield _killed(world, world.after(record.stop.at, made.stop_s), signal=15)


def _killed(world: World, at: datetime, *, signal: int) -> End:
    return End(at, world.after(at, _REPORT_S), RunPhase.STOPPED, 128 + signal, signal)


def _known(times: MachineTimes) -> Iterator[tuple[str, datetime]]:
    values = ((entry.name, cast("datetime | None", getattr(times, entry.name))) for entry in fields(times))
    return ((name, time) for name, time in values if time is not None)
