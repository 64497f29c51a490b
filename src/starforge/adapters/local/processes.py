"""Processes of this machine by pid and start time, found by descent and by what they hold, ended for sure.

Linux only: reads /proc. A name is never used to find a process, and a pid is never trusted without its start time.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
KILL_S = 20.0
_DEAD = "ZX"


@dataclass(frozen=True)
class Process:
    """A process of this boot: `started` is its start in clock ticks since the boot, so that a reused pid is another."""

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        """Whether it runs; a zombie does not."""
        return find(self.pid) == self


def find(pid: int) -> Process | None:
    """The live process of this number right now."""
    row = _row(pid)
    return row.process if row and row.alive else None


def started(pid: int) -> Process:
    """This process or a child that was not reaped yet, ended or not. OSError where there is no /proc."""
    row = _row(pid)
    if row is None:
        raise OSError(f"{PROC}/{pid} can't be read; the local fleet needs Linux with {PROC} mounted")
    return row.process


def descendants(of: int) -> list[Process]:
    """Every live process below `of`, children before their children."""
    rows = _rows()
    below: list[Process] = []
    parents = {of}
    while parents:
        children = [row for row in rows if row.parent in parents]
        below += [row.process for row in children if row.alive]
        parents = {row.process.pid for row in children}
    return below


def holders(*, marker: str, scratch: Path, sessions: Collection[int]) -> list[Process]:
    """Live processes that have `marker` (NAME=value) in their environment, or are of a session and use `scratch`.

    Ray's workers write their titles over the environment that /proc shows, so they are known by their session; that
    alone would not do, as numbers come again, and neither would the directory, where a person may look around.
    """
    needle = f"{marker}\0".encode()
    prefix = f"{scratch}/"
    return [
        row.process
        for row in _rows()
        if row.alive
        and (_has_marker(row.process.pid, needle) or (row.session in sessions and _uses(row.process.pid, prefix)))
    ]


def end(processes: Sequence[Process], number: int, *, within_s: float) -> None:
    """Sends a signal to each and waits until all have ended, or for `within_s`."""
    with ExitStack() as stack:
        waits = select.poll()
        open_ends = 0
        for handle in _handles(processes, stack):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
            waits.register(handle, select.POLLIN)
            open_ends += 1
        deadline = time.monotonic() + within_s
        while open_ends and (left := deadline - time.monotonic()) > 0:
            for handle, _event in waits.poll(left * 1000):
                waits.unregister(handle)
                open_ends -= 1


def end_all(which: Callable[[], Sequence[Process]], *, grace_s: float) -> Sequence[Process]:
    """Ends whatever `which` finds, and what it finds then, until nothing is left; returns what could not be ended."""
    end(which(), signal.SIGTERM, within_s=grace_s)
    deadline = time.monotonic() + KILL_S
    while left := which():
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            return left
        end(left, signal.SIGKILL, within_s=min(seconds, 2.0))
    return ()


def send(process: Process, number: int) -> bool:
    """Signals exactly this process; False if it has ended."""
    with ExitStack() as stack:
        for handle in _handles([process], stack):
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
                return True
    return False


@dataclass(frozen=True)
class _Row:
    process: Process
    parent: int
    session: int
    alive: bool


def _rows() -> list[_Row]:
    numbers = (int(entry.name) for entry in PROC.iterdir() if entry.name.isdecimal())
    return [row for row in map(_row, numbers) if row]


def _row(pid: int) -> _Row | None:
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name in brackets may hold anything, so fields are counted from its end: state, parent, …, start time.
    fields = text[text.rindex(")") + 2 :].split()
    return _Row(Process(pid, int(fields[19])), int(fields[1]), int(fields[3]), fields[0] not in _DEAD)


def _handles(processes: Iterable[Process], stack: ExitStack) -> Iterator[int]:
    for process in processes:
        try:
            handle = os.pidfd_open(process.pid)
        except ProcessLookupError:
            continue
        stack.callback(os.close, handle)
        if process.alive:
            yield handle


def _has_marker(pid: int, needle: bytes) -> bool:
    # Not readable: another person's process, or one that just ended; neither can be the run's.
    with suppress(PermissionError, FileNotFoundError, ProcessLookupError):
        return needle in (PROC / str(pid) / "environ").read_bytes()
    return False


def _uses(pid: int, prefix: str) -> bool:
    with suppress(PermissionError, FileNotFoundError, ProcessLookupError):
        folder = PROC / str(pid)
        links = [folder / "cwd", folder / "exe", *(folder / "fd").iterdir()]
        return any(_link(link).startswith(prefix) for link in links)
    return False


def _link(path: Path) -> str:
    with suppress(FileNotFoundError):
        return f"{path.readlink()}/"
    return ""
