"""Processes of a benchmark: each pinned to one core, with its use of processor and memory as /proc tells it."""

import contextlib
import os
import resource
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

SERVER_CORE = 0
REST_CORE = 1
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")
START_S = 120
STOP_S = 15


def stay_aside() -> None:
    """Keep this process and all its children off the server's core, except the server; let them open many sockets."""
    os.sched_setaffinity(0, {REST_CORE})
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextlib.contextmanager
def before_others(nice: int) -> Iterator[None]:
    """Within the block this session goes before others of the machine, if `nice` is below 0.

    Where sessions are scheduled as groups, the niceness of a process counts within its group alone.
    """
    group = Path("/proc/self/autogroup")
    if nice and group.exists():
        group.write_text(str(nice))
        try:
            yield
        finally:
            group.write_text("0")
    else:
        os.setpriority(os.PRIO_PROCESS, 0, nice)
        yield


def await_port(port: int, process: subprocess.Popen[bytes]) -> None:
    """Return once the process listens; nothing tells us when, so it is asked for."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with code {process.returncode} before it listened")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    raise TimeoutError(f"{process.args!r} does not listen after {START_S} s")


class Server:
    """A server of one process that listens on `port`; started again on the same one by `restart`."""

    def __init__(
        self, command: Sequence[str], port: int, *, env: Mapping[str, str], log: Path, cwd: Path | None
    ) -> None:
        self._command = ["taskset", "-c", str(SERVER_CORE), *command]
        self._env = {**os.environ, **env}
        self._log = log
        self._cwd = cwd
        self.port = port
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            process = subprocess.Popen(
                self._command, env=self._env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._cwd
            )
        try:
            await_port(self.port, process)
        except BaseException:
            process.kill()
            process.wait(timeout=STOP_S)
            raise
        return process

    def stop(self) -> None:
        if self.process.poll() is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=STOP_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=STOP_S)

    def restart(self) -> None:
        self.stop()
        self.process = self._start()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def cpu_s(self) -> float:
        """Seconds of processor it has used, in user and system mode."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def rss(self) -> int:
        """Bytes of memory it has resident."""
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * PAGE


class Core:
    """How busy the server's core was with other things than the server, since this was made: above 0.1, measure again."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._used = server.cpu_s()
        self._busy, self._all = self._ticks()

    def _ticks(self) -> tuple[int, int]:
        lines = Path("/proc/stat").read_text().splitlines()
        fields = next(line for line in lines if line.startswith(f"cpu{SERVER_CORE} ")).split()[1:9]
        user, nice, system, idle, waiting, *interrupts = map(int, fields)
        busy = user + nice + system + sum(interrupts)
        return busy, busy + idle + waiting

    def server_s(self) -> float:
        """Seconds of processor that the server used."""
        return self._server.cpu_s() - self._used

    def others(self) -> float:
        """Share of the core that others used."""
        busy, every = self._ticks()
        share = (busy - self._busy - self.server_s() * TICKS) / max(every - self._all, 1)
        return max(share, 0.0)
