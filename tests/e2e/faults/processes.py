"""The processes of ours, each of which can be killed at any moment and started again."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

KILL_EVERY_S = (3.0, 7.0)
AWAY_S = (0.0, 2.0)
STOP_S = 40
OURS: dict[str, tuple[str, ...]] = {
    "api": ("api",),
    "worker": ("worker", "--concurrency", "2"),
    "beat": ("worker", "--beat"),
    "watch": ("watch",),
}


@dataclass
class Process:
    """`starforge …` in a session of its own; all that it ever logs is in one file."""

    name: str
    arguments: Sequence[str]
    env: Mapping[str, str]
    log: Path
    _running: subprocess.Popen[bytes] | None = None

    @property
    def is_up(self) -> bool:
        return self._running is not None and self._running.poll() is None

    def start(self) -> None:
        command = [sys.executable, "-m", "starforge.cli.main", *self.arguments]
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(
                command, env=dict(self.env), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def members(self) -> list[int]:
        """Ids of the processes of its session, its own first."""
        return sorted(_session(self._running.pid)) if self._running else []

    def kill(self, pid: int) -> None:
        """Kill one of the members, and nothing else."""
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def bury(self) -> None:
        """Kill what is left of the session."""
        if self._running:
            for pid in self.members():
                self.kill(pid)
            self._running.wait()

    def stop(self) -> None:
        """SIGTERM, and SIGKILL to the session after a grace."""
        if self._running and self._running.poll() is None:
            self._running.terminate()
            with suppress(subprocess.TimeoutExpired):
                self._running.wait(STOP_S)
        self.bury()


def _session(leader: int) -> Iterator[int]:
    """Processes of a session; there is no other way to ask than to look at all."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with suppress(OSError, IndexError, ValueError):
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == leader and state != "Z":
                    yield int(entry.name)


@dataclass(frozen=True)
class Kill:
    """`nth` says which member, from 0 for the process itself to below 1 for the last of its children."""

    after_s: float
    name: str
    nth: float
    away_s: float


def order(seed: int, names: Sequence[str]) -> Iterator[Kill]:
    """What is killed, without an end; the same for the same seed."""
    chance = random.Random(f"faults/{seed}")
    while True:
        yield Kill(chance.uniform(*KILL_EVERY_S), chance.choice(names), chance.random(), chance.uniform(*AWAY_S))


@dataclass
class Killer:
    """Kills one of our processes every few seconds, in an order that the seed gives, and starts it again."""

    processes: Mapping[str, Process]
    seed: int
    kills: list[str] = field(default_factory=list)
    _task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Kill nothing more, and have everything up; safe to repeat."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for process in self.processes.values():
            if not process.is_up:
                process.bury()
                process.start()

    async def _run(self) -> None:
        for kill in order(self.seed, sorted(self.processes)):
            await asyncio.sleep(kill.after_s)
            await self._kill(self.processes[kill.name], kill.nth, kill.away_s)

    async def _kill(self, process: Process, nth: float, away: float) -> None:
        """One member: the first ends the whole, a later one is a child whose parent goes on."""
        members = process.members()
        if not members:
            return
        pid = members[int(nth * len(members))]
        self.kills.append(f"{time.strftime('%X')} {process.name} {'itself' if pid == members[0] else 'a child'}")
        process.kill(pid)
        await asyncio.sleep(away)
        if not process.is_up:
            await asyncio.to_thread(process.bury)  # who comes back as a container finds nothing of its former life
            process.start()
