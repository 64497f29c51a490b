"""Everything outside, small and in memory. Each effect counts as steps of `Faults`, which can cut it at any of them."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, cast

from starforge.adapters.store import SqlStore
from starforge.domain.capsule import (
    CapsuleFile,
    InlineFile,
    PackedCapsule,
    PackedCode,
    files_digest,
    manifest_bytes,
)
from starforge.domain.errors import (
    CodeRefused,
    FleetRefused,
    FleetUnavailable,
    NotFound,
    ObjectStoreUnavailable,
    Problem,
)
from starforge.domain.health import Access, Finding, FleetProbe, HealthCheckKind, HealthStatus
from starforge.domain.job import RunIdentity
from starforge.domain.names import Digest, RunKey
from starforge.domain.observation import RunPhase, RunSeen, Seen
from starforge.domain.ports import Audience, FleetKind, LaunchOrder, Resume, Signed, StopAnswer
from starforge.domain.queries import FeedRow, LogPart
from starforge.domain.reason import ObjectRef, Reason
from starforge.domain.spec import Deadlines, FleetDefaults, JobSpec
from starforge.domain.teardown import Found, RemainingObject

START = datetime(2026, 1, 1, tzinfo=UTC)
DEFAULTS = FleetDefaults("home", "example/train:1", 1, "2Gi", "1Gi", Deadlines(600, 1800, 0), 30)


WELL = FleetProbe((Finding(HealthCheckKind.KUBERNETES_API, seconds=0.1), Finding(HealthCheckKind.OPERATOR)), "v1.34.4")


class Crash(BaseException):
    """The process died: nothing of ours catches it."""


class HandClock:
    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


class Ids:
    """Never the same again in another world: the store that they share remembers jobs by id and revision."""

    _numbers = count(1)

    def __call__(self) -> str:
        return hashlib.sha256(str(next(self._numbers)).encode()).hexdigest()[:32]


@dataclass
class Faults:
    """Raises `error` at step number `at`: the steps are those before and after each effect, from 1 on."""

    at: int | None = None
    error: Callable[[], BaseException] = Crash
    count: int = 0
    hit: str | None = None

    def step(self, name: str) -> None:
        self.count += 1
        if self.count == self.at:
            self.hit = name
            raise self.error()


class FaultyStore:
    """The real store, of which each commit can be cut before or after it; `before` is done once before the next one."""

    def __init__(self, store: SqlStore, faults: Faults) -> None:
        self._store, self._faults = store, faults
        self.interfere: list[Callable[[], object]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def commit(self, *args: Any, **kwargs: Any) -> Sequence[FeedRow]:
        if self.interfere:
            self.interfere.pop(0)()
        self._faults.step("commit")
        rows = self._store.commit(*args, **kwargs)
        self._faults.step("committed")
        return rows

    def keep_log_part(self, part: LogPart) -> None:
        self._faults.step("keep")
        self._store.keep_log_part(part)
        self._faults.step("kept")

    def drop_moved_lines(self, *args: Any, **kwargs: Any) -> bool:
        self._faults.step("drop")
        more = self._store.drop_moved_lines(*args, **kwargs)
        self._faults.step("dropped")
        return more


@dataclass
class FakeFleet:
    """Runs that were launched, each once however often it is asked for."""

    faults: Faults
    clock: HandClock
    orders: dict[RunKey, LaunchOrder] = field(default_factory=dict)
    launches: list[LaunchOrder] = field(default_factory=list)
    stops: list[tuple[RunKey, int]] = field(default_factory=list)
    deletes: list[RunKey] = field(default_factory=list)
    created: dict[RunKey, datetime] = field(default_factory=dict)
    held: dict[RunKey, RemainingObject] = field(default_factory=dict)
    lasts: int = 0
    answer: StopAnswer = StopAnswer.ASKED
    down: str | None = None
    refuses: Reason | None = None
    refuses_removal: Reason | None = None
    refuses_looks: Reason | None = None
    refuses_list: Reason | None = None
    broken: bool = False
    looks: dict[RunKey, RunSeen] = field(default_factory=dict)
    during_launch: Callable[[], object] | None = None
    given: FleetDefaults = DEFAULTS
    probe: FleetProbe = WELL
    name: str = "home"
    kind: FleetKind = FleetKind.SIMULATED

    def defaults(self) -> FleetDefaults:
        return self.given

    def signature_seconds(self, spec: JobSpec) -> float | None:
        return None

    def launch(self, order: LaunchOrder) -> RunIdentity:
        self._asked("launch")
        self.launches.append(order)
        if self.refuses:
            raise FleetRefused(self.refuses)
        self.orders.setdefault(order.run, order)
        self.created.setdefault(order.run, self.clock())
        if self.during_launch:
            self.during_launch()
        self.faults.step("launched")
        return RunIdentity(order.name, "training", f"uid of {order.run}")

    def stop(self, run: RunKey, *, grace_s: int) -> StopAnswer:
        self._asked("stop")
        self.stops.append((run, grace_s))
        self.faults.step("stopped")
        return self.answer

    def delete(self, run: RunKey) -> None:
        self._asked("delete")
        if self.refuses_removal:
            raise FleetRefused(self.refuses_removal)
        self.deletes.append(run)
        if self.lasts == 0 and run not in self.held:
            self.orders.pop(run, None)
        self.faults.step("deleted")

    def remaining(self, run: RunKey) -> Sequence[RemainingObject]:
        self._asked("remaining")
        if self.lasts:
            self.lasts -= 1
            return [RemainingObject(ObjectRef("Pod", "head", "training", "head-uid"), finalizers=("a/b",))]
        return [self._rayjob(run)] if run in self.orders else []

    def ours(self, installation: str) -> Sequence[Found]:
        self._asked("ours")
        if self.refuses_list:
            raise FleetRefused(self.refuses_list)
        return [
            Found(run, self._rayjob(run), self.created.get(run, START), claimed=order.installation is not None)
            for run, order in self.orders.items()
            if order.installation in (installation, None)
        ]

    def _rayjob(self, run: RunKey) -> RemainingObject:
        return self.held.get(run) or RemainingObject(ObjectRef("RayJob", self.orders[run].name, "training"))

    def look(self, run: RunKey) -> RunSeen:
        self._asked("look")
        if self.refuses_looks:
            raise FleetRefused(self.refuses_looks)
        return self.looks.get(run) or RunSeen(run, RunPhase.WAITING, self.clock())

    def health(self, asked: Access | None = None) -> FleetProbe:
        if self.broken:
            raise RuntimeError("defect in health")
        if self.down:
            return FleetProbe((Finding(HealthCheckKind.KUBERNETES_API, HealthStatus.DOWN, self.down),), access=asked)
        return self.probe

    def watch(self, resume: Callable[[RunKey, str], Resume], stop: threading.Event) -> Iterator[Seen]:
        raise AssertionError("no action watches")

    def _asked(self, name: str) -> None:
        if self.down:
            raise FleetUnavailable(self.down)
        if self.broken:
            raise RuntimeError(f"defect in {name}")
        self.faults.step(name)


@dataclass
class FakeObjects:
    faults: Faults
    clock: HandClock
    objects: dict[str, bytes] = field(default_factory=dict)
    down: bool = False
    longest_signature_s: float = 7 * 86400.0

    def prepare(self) -> None: ...

    def check(self) -> None:
        self._asked("check")

    def put(self, key: str, source: Path | bytes, *, only_new: bool = False) -> bool:
        self._asked("put")
        taken = only_new and key in self.objects
        if not taken:
            self.objects[key] = source if isinstance(source, bytes) else source.read_bytes()
        self.faults.step("stored")
        return not taken

    def size(self, key: str) -> int | None:
        self._asked("size")
        return len(self.objects[key]) if key in self.objects else None

    def read(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        self._asked("read")
        if key not in self.objects:
            raise NotFound(f"There is no object {key}.")
        return self.objects[key][start:][:length]

    def fetch(self, key: str, into: Path) -> None:
        into.write_bytes(self.read(key))

    def delete(self, key: str) -> None:
        self._asked("delete")
        self.objects.pop(key, None)
        self.faults.step("deleted")

    def sign_get(self, key: str, *, seconds: float, audience: Audience) -> Signed:
        return self._signed("GET", key, seconds)

    def sign_put(self, key: str, *, seconds: float, audience: Audience, only_new: bool) -> Signed:
        return self._signed("PUT", key, seconds)

    def _signed(self, method: str, key: str, seconds: float) -> Signed:
        self._asked("sign")
        assert 0 < seconds <= self.longest_signature_s
        return Signed(method, f"https://store/{key}?signature=x", (), self.clock() + timedelta(seconds=seconds))

    def _asked(self, name: str) -> None:
        if self.down:
            raise ObjectStoreUnavailable("The object store does not answer.")
        self.faults.step(name)


class FakePacker:
    """Archives are JSON; `salt` stands for a zlib that compresses otherwise."""

    def __init__(self) -> None:
        self.salt = ""
        self.broken = False

    def pack_files(self, files: Sequence[InlineFile], into: Path) -> PackedCode:
        return self._code({file.path: file.content for file in files}, into / "code")

    def pack_directory(self, root: Path, into: Path) -> PackedCode:
        raise AssertionError("no action packs directories")

    def open_code(self, archive: Path) -> PackedCode:
        try:
            files = json.loads(archive.read_bytes())["files"]
        except ValueError:
            raise CodeRefused([Problem("INVALID", ("code",), "It is no zip.", rule="NOT_A_ZIP")]) from None
        return self._code(files, archive)

    def build_capsule(self, code: PackedCode, jobspec: bytes, into: Path) -> PackedCapsule:
        files = (*code.files, _file(".starforge/jobspec.json", jobspec))
        content = self.salt.encode() + manifest_bytes(files)
        path = into / "capsule"
        path.write_bytes(content)
        sha256 = hashlib.sha256(content).hexdigest()
        digest = files_digest(files)
        return PackedCapsule(
            digest, code.digest, files, path, len(content), sha256, Digest("runner"), manifest_bytes(files)
        )

    def _code(self, files: dict[str, str], path: Path) -> PackedCode:
        if self.broken:
            raise RuntimeError("defect of the packer")
        listed = tuple(_file(name, text.encode()) for name, text in sorted(files.items()))
        content = code_archive(files)
        path.write_bytes(content)
        return PackedCode(files_digest(listed), listed, path, len(content), hashlib.sha256(content).hexdigest())


def _file(path: str, content: bytes) -> CapsuleFile:
    return CapsuleFile(path, len(content), hashlib.sha256(content).hexdigest())


def code_archive(files: dict[str, str]) -> bytes:
    return json.dumps({"files": files}, sort_keys=True).encode()


def code_digest(files: dict[str, str]) -> Digest:
    return files_digest(_file(name, text.encode()) for name, text in files.items())


def as_port(fake: object) -> Any:
    return cast("Any", fake)
