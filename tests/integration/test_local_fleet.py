"""Runs of the local fleet on real Ray: side by side, stopped, orphaned; and after each of them nothing is left."""

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from starforge.adapters.local.environment import marker
from starforge.adapters.local.fleet import LocalFleet
from starforge.adapters.local.rundir import Phase, RunDir
from starforge.adapters.packing.packer import CapsulePacker
from starforge.domain.capsule import InlineFile
from starforge.domain.errors import FleetRefused
from starforge.domain.jobspec import jobspec
from starforge.domain.names import RunKey, job_id, run_name
from starforge.domain.observation import ENDED_PHASES, LogSeen, PodPhase, RunPhase, RunSeen, Seen
from starforge.domain.ports import LaunchOrder, Resume, Signed, StopAnswer
from starforge.domain.reason import ReasonCode
from starforge.domain.spec import Deadlines, EnvVar, FleetDefaults, JobSpec, PoolSpec, SecretKey
from starforge.domain.stuck_pods import STORE_AWAY
from starforge.domain.unframing import FrameParser
from starforge.domain.wire import Exit, Message, ProgressSaid, Started

pytestmark = pytest.mark.timeout(900)

DEFAULTS = FleetDefaults("local", None, 1, "2Gi", "100Mi", Deadlines(0, 600, 600), 10, has_images=False)
POOLS = (
    PoolSpec("train", "h200", 1, 1, 1, "1Gi", "100Mi"),
    PoolSpec("eval", "b200", 1, 1, 1, "1Gi", "100Mi"),
)
NOTE = 'it\'s "$(HOME)"\nand a second line'

ACTOR_IN_EVAL = """
import os, ray, starforge, helper
ray.init()

@ray.remote(num_cpus=0, num_gpus=1, resources={"eval": 0.001})
class Reader:
    def read(self):
        starforge.progress(1, 2, gpus=len(ray.get_gpu_ids()))
        return open("data/note.txt").read(), os.environ["NOTE"], helper.ANSWER

print(ray.get(Reader.remote().read.remote()), flush=True)
print("resources", sorted(ray.cluster_resources().items()), flush=True)
"""
FAILS = "import sys\nprint('before the end', flush=True)\nsys.exit(3)\n"
ACTOR_WAITS = """
import signal, ray
ray.init()

@ray.remote(num_cpus=0)
class Idle:
    def wait(self):
        print("waiting", flush=True)
        signal.pause()

print("waiting", flush=True)
ray.get(Idle.remote().wait.remote())
"""
DEAF = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("waiting", flush=True)
while True:
    signal.pause()
"""
# Leaves a process that has neither our environment nor our session, and does not hear SIGTERM.
STUBBORN = """
import os, signal, subprocess, sys, ray
ray.init()

@ray.remote(num_cpus=0)
class Idle:
    def wait(self):
        signal.pause()

subprocess.Popen(["setsid", "-f", "env", "-i", sys.executable, "-c",
    "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); os.write(1, b'stray' + bytes([10])); "
    "signal.pause()"])
signal.signal(signal.SIGTERM, lambda *_: (print("asked to stop", flush=True), os._exit(4)))
Idle.remote().wait.remote()
os.write(1, b"waiting" + bytes([10]))  # print would write the end of the line apart, and two write here
while True:
    signal.pause()
"""


@dataclass
class Told:
    """What a watch told of one run, and the driver's log as people read it."""

    nonce: str
    runs: list[RunSeen] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    closed: bool = False

    def __post_init__(self) -> None:
        self._parser = FrameParser(trusts=self.nonce.__eq__)

    def take(self, seen: Seen) -> None:
        if isinstance(seen, RunSeen):
            self.runs.append(seen)
        if isinstance(seen, LogSeen):
            parsed = self._parser.feed(seen.lines)
            self.lines += [line.text for line in parsed.lines]
            self.messages += parsed.messages
            self.closed = seen.closed

    @property
    def phase(self) -> RunPhase | None:
        return self.runs[-1].phase if self.runs else None


class Machine:
    """A local fleet in a directory of its own, and the Capsules that tests run on it."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.runs = folder / "runs"
        self.fleet = LocalFleet(self.runs, gpus={"h200": 8, "b200": 4}, defaults=DEFAULTS)
        self._folder = folder
        self._packer = CapsulePacker(cache)
        self._numbers = count(1)
        self.launched: list[RunKey] = []

    def order(self, code: str, *, spec: JobSpec | None = None, **files: str) -> LaunchOrder:
        number = next(self._numbers)
        run = RunKey(job_id(f"{os.getpid():010}{number:010}"), 1)
        out = self._folder / f"packed-{number}"
        out.mkdir()
        sources = {"train.py": code, "data/note.txt": "a note", **{f"{name}.py": text for name, text in files.items()}}
        packed = self._packer.pack_files([InlineFile(path, text) for path, text in sources.items()], out)
        spec = spec or a_spec()
        capsule = self._packer.build_capsule(packed, jobspec(spec), out)
        far = datetime.now(UTC) + timedelta(days=1)
        return LaunchOrder(
            run=run,
            name=run_name(spec.name, run),
            spec=spec,
            capsule=Signed("GET", capsule.archive.as_uri(), (), far),
            capsule_digest=capsule.digest,
            transport_sha256=capsule.transport_sha256,
            claim=Signed("PUT", (out / "claim").as_uri(), (("If-None-Match", "*"),), far),
            claim_until=None,
            nonce=f"nonce-{number}",
        )

    def launch(self, order: LaunchOrder) -> str:
        self.launched.append(order.run)
        return self.fleet.launch(order).uid or ""

    def directory(self, run: RunKey) -> RunDir:
        return RunDir(self.runs / (self.fleet.look(run).uid or ""))

    def supervisor(self, order: LaunchOrder) -> int:
        status = self.directory(order.run).status()
        assert status is not None
        return status.supervisor.pid

    def follow(self, *orders: LaunchOrder, until: Callable[[dict[RunKey, Told]], bool]) -> dict[RunKey, Told]:
        """Watches until what the orders' runs told is enough."""
        told = {order.run: Told(order.nonce) for order in orders}
        stop = threading.Event()
        for seen in self.fleet.watch(lambda _run, _source: Resume(None), stop):
            if isinstance(seen, RunSeen | LogSeen) and seen.run in told:
                told[seen.run].take(seen)
            if until(told):
                stop.set()
        return told

    def remove(self, order: LaunchOrder) -> None:
        """Deletes the run and waits until it is told to be gone; then nothing may be left of it."""
        uid = self.fleet.look(order.run).uid or ""
        scratch = Path(self.directory(order.run).order().scratch)  # type: ignore[union-attr]
        self.fleet.delete(order.run)
        self.follow(order, until=lambda _: not self.fleet.remaining(order.run))
        assert self.fleet.look(order.run).phase is RunPhase.ABSENT
        assert not scratch.exists()
        assert users_of(marker(uid), scratch) == []


def a_spec(*pools: PoolSpec, env: tuple[EnvVar, ...] = (EnvVar("NOTE", NOTE),)) -> JobSpec:
    return JobSpec(
        name="local",
        project="default",
        fleet=None,
        description=None,
        image=None,
        command=("python3", "train.py"),
        env=env,
        pools=pools or POOLS,
        deadlines=Deadlines(0, 600, 600),
        labels=(),
        priority=0,
        cancel_grace_seconds=10,
    )


def users_of(mark: str, scratch: Path) -> list[str]:
    """Every process that has the mark, or a file, a directory or an argument in the scratch directory."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal() and int(folder.name) != os.getpid():
            text = _all_text(folder)
            if mark in text or f"{scratch}" in text:
                found.append(text[:300])
    return found


def _all_text(folder: Path) -> str:
    parts = []
    try:
        parts = [(folder / name).read_bytes().decode(errors="replace") for name in ("environ", "cmdline", "maps")]
        parts += [str(link.readlink()) for link in [folder / "cwd", *(folder / "fd").iterdir()]]
    except OSError:
        pass  # it ended while it was read
    return "\0".join(parts)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def machine(tmp_path: Path, cache: Path) -> Iterator[Machine]:
    made = Machine(tmp_path, cache)
    yield made
    for run in made.launched:
        made.fleet.delete(run)


def is_waiting(told: dict[RunKey, Told]) -> bool:
    return all("waiting" in one.lines and "stray" in one.lines for one in told.values())


def have_ended(told: dict[RunKey, Told]) -> bool:
    return all(one.phase in ENDED_PHASES and one.closed for one in told.values())


def test_two_runs_at_once_each_have_a_ray_of_their_own(machine: Machine) -> None:
    good = machine.order(ACTOR_IN_EVAL, helper="ANSWER = 42")
    bad = machine.order(FAILS)
    machine.launch(good)
    machine.launch(bad)
    told = machine.follow(good, bad, until=have_ended)
    assert told[good.run].phase is RunPhase.SUCCEEDED, told[good.run].lines
    assert f"{('a note', NOTE, 42)}" in told[good.run].lines
    resources = next(line for line in told[good.run].lines if line.startswith("resources"))
    assert "('CPU', 2.0)" in resources
    assert "('GPU', 2.0)" in resources
    assert "('eval', 1.0)" in resources
    assert "('train', 1.0)" in resources
    reports = [message for message in told[good.run].messages if isinstance(message, ProgressSaid)]
    assert [(one.step, one.total, one.metrics) for one in reports] == [(1, 2, (("gpus", 1.0),))]
    assert told[bad.run].phase is RunPhase.FAILED
    assert [(one.code, one.signal) for one in told[bad.run].messages if isinstance(one, Exit)] == [(3, None)]
    assert told[bad.run].runs[-1].message == "The command ended with exit code 3."
    machine.remove(good)
    machine.remove(bad)


def test_a_run_waits_for_an_object_store_that_is_away_at_its_launch(machine: Machine, tmp_path: Path) -> None:
    order = machine.order("print('here', flush=True)")
    store = Path(order.capsule.url.removeprefix("file://")).parent
    store.rename(tmp_path / "kept")
    store.write_text("no directory")
    machine.launch(order)

    def is_told(told: dict[RunKey, Told]) -> bool:
        pods = [pod for run in told[order.run].runs for pod in run.pods]
        return any(container.waiting_reason == STORE_AWAY for pod in pods for container in pod.containers)

    machine.follow(order, until=is_told)
    store.unlink()
    (tmp_path / "kept").rename(store)
    told = machine.follow(order, until=have_ended)[order.run]
    assert (told.phase, told.lines) == (RunPhase.SUCCEEDED, ["here"])
    machine.remove(order)


def test_a_stopped_run_ends_with_everything_it_started(machine: Machine) -> None:
    order = machine.order(STUBBORN)
    machine.launch(order)
    machine.follow(order, until=is_waiting)
    assert machine.fleet.stop(order.run, grace_s=60) is StopAnswer.ASKED
    told = machine.follow(order, until=have_ended)[order.run]
    assert told.phase is RunPhase.STOPPED
    assert "asked to stop" in told.lines
    assert [message.code for message in told.messages if isinstance(message, Exit)] == [4]
    left = machine.fleet.remaining(order.run)
    machine.follow(
        order, until=lambda _: {one.object.kind for one in machine.fleet.remaining(order.run)} == {"Directory"}
    )
    assert "Directory" in {one.object.kind for one in left}
    machine.remove(order)


def test_a_run_outlives_who_launched_it_and_leaves_no_orphans_when_its_supervisor_is_killed(machine: Machine) -> None:
    order = machine.order(STUBBORN)
    launch_elsewhere(machine, order)
    machine.follow(order, until=is_waiting)
    uid = machine.launch(order)  # adopts it
    told = machine.follow(order, until=is_waiting)[order.run]
    assert told.runs[-1].uid == uid
    assert len([message for message in told.messages if isinstance(message, Started)]) == 1
    os.kill(machine.supervisor(order), signal.SIGKILL)
    told = machine.follow(order, until=lambda told: told[order.run].closed)[order.run]
    assert told.phase is RunPhase.RUNNING
    assert told.runs[-1].pods[0].phase is PodPhase.FAILED
    machine.remove(order)


def test_a_watch_ends_what_is_left_when_supervisor_and_keeper_are_killed(machine: Machine) -> None:
    order = machine.order(ACTOR_WAITS)
    machine.launch(order)
    machine.follow(order, until=lambda told: "waiting" in told[order.run].lines)
    supervisor = machine.supervisor(order)
    for pid in (parent_of(supervisor), supervisor):
        os.kill(pid, signal.SIGKILL)
    told = machine.follow(order, until=lambda told: told[order.run].closed)[order.run]
    assert told.phase is RunPhase.RUNNING
    assert told.runs[-1].pods[0].phase is PodPhase.FAILED
    machine.remove(order)


def test_who_does_not_hear_is_killed_when_the_grace_is_over(machine: Machine) -> None:
    order = machine.order(DEAF)
    machine.launch(order)
    machine.follow(order, until=lambda told: "waiting" in told[order.run].lines)
    machine.fleet.stop(order.run, grace_s=1)
    told = machine.follow(order, until=have_ended)[order.run]
    assert told.phase is RunPhase.STOPPED
    exits = [(message.code, message.signal) for message in told.messages if isinstance(message, Exit)]
    assert exits == [(128 + signal.SIGKILL, signal.SIGKILL)]
    machine.remove(order)


def test_a_ray_that_dies_is_a_lost_head(machine: Machine) -> None:
    order = machine.order(ACTOR_WAITS)
    machine.launch(order)
    machine.follow(order, until=lambda told: "waiting" in told[order.run].lines)
    status = machine.directory(order.run).status()
    assert status is not None
    assert status.head is not None
    os.kill(status.head.pid, signal.SIGKILL)
    told = machine.follow(order, until=lambda told: told[order.run].closed)[order.run]
    assert told.phase is RunPhase.RUNNING
    assert told.runs[-1].pods[0].phase is PodPhase.FAILED
    machine.remove(order)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


def launch_elsewhere(machine: Machine, order: LaunchOrder) -> None:
    """Launches in a process that has ended when this returns."""
    code = (
        "import pickle, sys\n"
        "runs, gpus, defaults, order = pickle.load(sys.stdin.buffer)\n"
        "from starforge.adapters.local.fleet import LocalFleet\n"
        "LocalFleet(runs, gpus=gpus, defaults=defaults).launch(order)\n"
    )
    sent = pickle.dumps((machine.runs, {"h200": 8, "b200": 4}, DEFAULTS, order))
    subprocess.run([sys.executable, "-c", code], input=sent, check=True, timeout=120)
    machine.launched.append(order.run)


def test_a_capsule_that_is_not_the_one_packed_is_never_run(machine: Machine) -> None:
    order = replace(machine.order(FAILS), transport_sha256="0" * 64)
    machine.launch(order)
    told = machine.follow(order, until=have_ended)[order.run]
    assert told.phase is RunPhase.FAILED
    assert "another checksum" in (told.runs[-1].message or "")
    assert told.lines == []
    machine.remove(order)


def test_a_run_waits_until_another_one_gives_its_gpus_back(machine: Machine) -> None:
    big = PoolSpec("train", "h200", 1, 8, 1, "1Gi", "100Mi")
    first, second = (machine.order(FAILS, spec=a_spec(big)) for _ in range(2))
    machine.launch(first)
    machine.launch(second)

    def second_waits(told: dict[RunKey, Told]) -> bool:
        return machine.directory(second.run).status().phase is Phase.QUEUED  # type: ignore[union-attr]

    told = machine.follow(first, second, until=second_waits)[second.run]
    assert told.phase is RunPhase.WAITING
    machine.remove(first)
    gone = machine.follow(second, until=lambda _: not second_waits({}))[second.run]
    assert gone.phase is not None
    machine.remove(second)


def test_what_this_machine_can_never_run_is_refused(machine: Machine) -> None:
    order = machine.order(FAILS, spec=a_spec(PoolSpec("train", "a100", 1, 1, 1, "1Gi", "100Mi")))
    with pytest.raises(FleetRefused) as caught:
        machine.fleet.launch(order)
    assert caught.value.reason.code is ReasonCode.UNSCHEDULABLE
    assert not machine.fleet.remaining(order.run)


def test_a_secret_of_a_cluster_is_refused(machine: Machine) -> None:
    secret = EnvVar("TOKEN", secret=SecretKey("hub", "token"))
    with pytest.raises(FleetRefused) as caught:
        machine.fleet.launch(machine.order(FAILS, spec=a_spec(env=(secret,))))
    assert caught.value.reason.code is ReasonCode.MISSING_REFERENCE
