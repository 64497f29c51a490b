"""Two observers of a fleet: one dies or freezes in the middle, and the other goes on with nothing lost or doubled."""

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from starforge.domain.actions.enforce_deadlines import enforce_deadlines
from starforge.domain.actions.mind_observer import mind_observer
from starforge.domain.actions.perform import perform
from starforge.domain.actions.submit import Submission, submit
from starforge.domain.capsule import InlineFile
from starforge.domain.job import Actor, ActorKind, Job, JobState
from starforge.domain.log_parts import read_log
from starforge.domain.logs import DRIVER
from starforge.domain.names import JobId
from starforge.domain.ports import Ports
from starforge.domain.queries import LogRange
from starforge.domain.spec import EnvVar, PoolDraft, SpecDraft
from tests.integration.gateway import PATIENCE_S, Platform
from tests.integration.watch_process import FREEZE, THAW
from tests.servers import redis_server

ROOT = Path(__file__).parent.parent.parent
STEP = re.compile(r"step (\d+)/")
START_S = 180
"""Only a machine that is very busy takes so long to start a process."""
SECONDS = 2000
"""Of the fleet's time, of which 20 go by in one: longer than a test takes, and with a step every second or so."""


@dataclass
class Watcher:
    """A process that watches or stands by."""

    process: subprocess.Popen[str]
    said: list[str] = field(default_factory=list)
    observes: threading.Event = field(default_factory=threading.Event)

    def read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.said.append(line)
            if line.startswith("observing fleet"):
                self.observes.set()


@contextmanager
def watcher(there: Platform) -> Iterator[Watcher]:
    command = [
        sys.executable,
        "-m",
        "tests.integration.watch_process",
        str(there.data),
        there.redis.url,
        str(there.cache),
    ]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    it = Watcher(process)
    reader = threading.Thread(target=it.read)
    reader.start()
    try:
        yield it
    finally:
        process.send_signal(THAW)
        process.terminate()
        process.wait(PATIENCE_S)
        reader.join(PATIENCE_S)
        if process.stdout:
            process.stdout.close()


@dataclass
class Site:
    """Two watchers, and workers in this process; `first` observes."""

    ports: Ports
    first: Watcher
    other: Watcher

    def job(self, job: JobId) -> Job:
        found = self.ports.store.job(job)
        assert found is not None
        return found

    def lines(self, job: JobId) -> list[str]:
        which = LogRange(self.job(job).run, DRIVER, 1, 100_000)
        return [line.text for line in read_log(self.ports.store, self.ports.objects, which)]

    def until(self, what: str, wanted: Callable[[], object]) -> None:
        for _ in range(PATIENCE_S * 10):
            if wanted():
                return
            threading.Event().wait(0.1)
        raise AssertionError(f"{what}: {self.first.said[-5:]} {self.other.said[-5:]}")


def work(ports: Ports, stop: threading.Event) -> None:
    while not stop.wait(0.1):
        enforce_deadlines(ports)
        mind_observer(ports)
        for command in ports.store.due(at=ports.now(), limit=100):
            perform(ports, command)


@pytest.fixture
def site(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with ExitStack() as stack:
        redis = stack.enter_context(redis_server(tmp_path))
        there = Platform(tmp_path, redis, tmp_path_factory.getbasetemp() / "runner")
        there.rest()  # commands are done by `work`
        parts, stop = there.parts(), threading.Event()
        stack.callback(parts.close)
        first = stack.enter_context(watcher(there))
        assert first.observes.wait(START_S), first.said
        other = stack.enter_context(watcher(there))
        worker = threading.Thread(target=work, args=(parts.ports, stop))
        worker.start()
        stack.callback(worker.join, PATIENCE_S)
        stack.callback(stop.set)
        yield Site(parts.ports, first, other)


def submitted(ports: Ports) -> JobId:
    env = (EnvVar("SIMULATED_OUTCOME", "SUCCEED"), EnvVar("SIMULATED_SECONDS", str(SECONDS)))
    draft = SpecDraft("train", ("python3", "train.py"), (PoolDraft("train", "h200", 1, 1),), env=env)
    return submit(
        ports, Submission(draft, (InlineFile("train.py", "print(1)\n"),)), Actor("ann", ActorKind.USER)
    ).job.id


def steps(site: Site, job: JobId) -> list[int]:
    return [int(found[1]) for line in site.lines(job) if (found := STEP.search(line))]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", [signal.SIGKILL, FREEZE, signal.SIGTERM])
def test_the_other_one_goes_on_with_every_line_and_none_twice(site: Site, how: signal.Signals) -> None:
    job = submitted(site.ports)
    site.until("the first observer reads its log", lambda: len(steps(site, job)) > 3)
    assert not site.other.observes.is_set()
    site.first.process.send_signal(how)
    assert site.other.observes.wait(PATIENCE_S)
    before = len(steps(site, job))
    site.until("the other observer reads its log", lambda: len(steps(site, job)) > before)
    site.first.process.send_signal(THAW)  # it wakes up with what it held, and a lease that is not its own
    if how is FREEZE:
        site.until("it notices", lambda: any("observed by somebody else" in line for line in site.first.said))
    more = len(steps(site, job)) + 5
    site.until("the other observer goes on", lambda: len(steps(site, job)) >= more)
    told = steps(site, job)
    assert told == list(range(1, told[-1] + 1))
    assert site.job(job).attempt.stale_since is None


@pytest.mark.timeout(300)
def test_without_another_one_its_jobs_are_stale_until_it_is_back(site: Site) -> None:
    job = submitted(site.ports)
    site.until("the first observer reads its log", lambda: len(steps(site, job)) > 3)
    site.other.process.kill()
    site.first.process.send_signal(FREEZE)
    site.until("the job is stale", lambda: site.job(job).attempt.stale_since)
    assert "Nobody observes" in (site.job(job).attempt.stale_problem or "")
    assert site.job(job).state is JobState.RUNNING
    site.first.process.send_signal(THAW)
    site.until("the job is heard again", lambda: not site.job(job).attempt.stale_since)
    more = len(steps(site, job)) + 5
    site.until("its log goes on", lambda: len(steps(site, job)) >= more)
    told = steps(site, job)
    assert told == list(range(1, told[-1] + 1))
