"""The log streams of a run: the driver's, and one for each container that started."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from starforge.adapters.simulated.containers import killed_with
from starforge.adapters.simulated.driver import driver_stream
from starforge.adapters.simulated.timeline import MachineLife, Timeline
from starforge.domain.logs import DRIVER
from starforge.domain.observation import RawLine


@dataclass(frozen=True)
class Stream:
    """A stream: its lines with their times, from the first one on, and when it closes (None for not known yet)."""

    source: str
    lines: Callable[[], Iterator[RawLine]]
    closes_at: datetime | None
    pod: str | None = None
    container: str | None = None


def streams(life: Timeline) -> tuple[Stream, ...]:
    """Every stream that a run has or will have, whatever the time."""
    containers = (_container(life, machine) for machine in life.machines if machine.times.started_at is not None)
    return (_driver(life), *containers)


def _driver(life: Timeline) -> Stream:
    closes = life.end.at if life.end is not None else life.gone_at
    return Stream(DRIVER, lambda: driver_stream(life), closes)


def _container(life: Timeline, machine: MachineLife) -> Stream:
    source = f"pod/{machine.pod}/{machine.container}"
    died = killed_with(life, machine)
    closes = died.at if died is not None else machine.times.gone_at
    return Stream(source, lambda: iter(_ray_lines(life, machine)), closes, machine.pod, machine.container)


def _ray_lines(life: Timeline, machine: MachineLife) -> list[RawLine]:
    address = _address(life, machine)
    said = [(machine.times.started_at, f"INFO scripts.py -- Local node IP: {address}")]
    if machine is life.machines[0]:
        said.append((machine.times.ready_at, "INFO scripts.py -- Dashboard agent is listening on port 52365"))
    said.append((machine.times.ready_at, "SUCC scripts.py -- Ray runtime started."))
    return [RawLine(text.encode(), at) for at, text in said if at is not None]


def _address(life: Timeline, machine: MachineLife) -> str:
    chance = life.world.chance(life.record.run, f"address of {machine.pod}")
    return f"10.{chance.randint(8, 11)}.{chance.randint(0, 255)}.{chance.randint(2, 254)}"
