"""The directory of a run: what was ordered, what became of it, and its output. All that outlives a process of ours.

run.json (the order), attempt.json (what the runner reads), status.json (what the supervisor did), stop.json (a wish to
stop), head.log (the head container's output: Ray's own and the driver's frames), supervisor.log, lock. It is private,
as the signed URLs and the environment of the job are in it.
"""

import fcntl
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from starforge.adapters.local.node import Machine, NodeResources
from starforge.adapters.local.processes import Process

Record = TypeVar("Record")

GRAVE = ".gone-"


class Phase(StrEnum):
    """What the supervisor is doing."""

    QUEUED = "QUEUED"
    PREPARING = "PREPARING"
    AWAITING_STORE = "AWAITING_STORE"
    STARTING = "STARTING"
    RUNNING = "RUNNING"
    ENDING = "ENDING"
    ENDED = "ENDED"


class Ending(StrEnum):
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"
    HEAD_LOST = "HEAD_LOST"


@dataclass(frozen=True)
class RunOrder:
    """What to run. `capsule_url` is https, http or file; `grace_s` is between SIGTERM and SIGKILL."""

    uid: str
    job: str
    attempt: int
    name: str
    capsule_url: str
    capsule_headers: dict[str, str]
    transport_sha256: str
    ca_file: str | None
    env: dict[str, str]
    node: NodeResources
    machines: tuple[Machine, ...]
    fleet_gpus: dict[str, int]
    grace_s: float
    created_at: float
    scratch: str


@dataclass(frozen=True)
class Status:
    """Where a run is. Times are seconds since the epoch, None until it has happened. `ending` is told with ENDED."""

    phase: Phase
    supervisor: Process
    scratch: str
    head: Process | None = None
    runner: Process | None = None
    address: str | None = None
    admitted_at: float | None = None
    ready_at: float | None = None
    command_at: float | None = None
    ended_at: float | None = None
    exit_code: int | None = None
    ending: Ending | None = None
    message: str | None = None


@dataclass(frozen=True)
class StopWish:
    """`remove` asks for the directory to go as well, when everything has ended."""

    grace_s: float
    remove: bool = False


_ORDER = TypeAdapter(RunOrder)
_STATUS = TypeAdapter(Status)
_STOP = TypeAdapter(StopWish)


class RunDir:
    """Reads and writes the files of one run; each is replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.head_log = path / "head.log"
        self.supervisor_log = path / "supervisor.log"
        self.attempt_file = path / "attempt.json"
        self.status_file = path / "status.json"

    def order(self) -> RunOrder | None:
        return self._read("run.json", _ORDER)

    def status(self) -> Status | None:
        return self._read("status.json", _STATUS)

    def stop_wish(self) -> StopWish | None:
        return self._read("stop.json", _STOP)

    def removal_asked_at(self) -> float | None:
        """When the directory was last asked to go, in seconds since the epoch; None if it was not."""
        wish = self.stop_wish()
        try:
            return (self.path / "stop.json").stat().st_mtime if wish and wish.remove else None
        except FileNotFoundError:
            return None

    def write_order(self, order: RunOrder) -> None:
        self._write("run.json", _ORDER.dump_json(order))

    def write_status(self, status: Status) -> None:
        self._write("status.json", _STATUS.dump_json(status))

    def write_stop(self, wish: StopWish) -> None:
        self._write("stop.json", _STOP.dump_json(wish))

    def write_attempt(self, text: bytes) -> None:
        self._write("attempt.json", text)

    @contextmanager
    def lock(self) -> Iterator[bool]:
        """Whether nobody else has the run; it is ours for the block then."""
        with (self.path / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True

    def remove(self) -> None:
        """The directory goes as a whole first, so that nobody reads half of it."""
        grave = self.path.with_name(f"{GRAVE}{secrets.token_hex(8)}")
        try:
            self.path.rename(grave)
        except FileNotFoundError:
            return
        shutil.rmtree(grave, ignore_errors=True)  # what can't be removed now goes with the next start

    def _read(self, name: str, adapter: TypeAdapter[Record]) -> Record | None:
        try:
            text = (self.path / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return adapter.validate_json(text)

    def _write(self, name: str, text: Any) -> None:
        draft = self.path / f".{name}-{secrets.token_hex(8)}"
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text)
        draft.replace(self.path / name)
