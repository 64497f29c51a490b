"""The `local` fleet: the port on top of run directories and their supervisors."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from starforge.adapters.local import processes
from starforge.adapters.local.admission import lacking
from starforge.adapters.local.node import machines
from starforge.adapters.local.nodes import node_views
from starforge.adapters.local.ordering import attempt_file, run_order
from starforge.adapters.local.reaping import is_orphaned, processes_of, reap
from starforge.adapters.local.rundir import GRAVE, Phase, RunDir, RunOrder, StopWish
from starforge.adapters.local.scratch import scratch_path
from starforge.adapters.local.seeing import found, seen
from starforge.adapters.local.watching import Watch
from starforge.domain.errors import FleetRefused, FleetUnavailable
from starforge.domain.health import Access, Finding, FleetProbe, HealthCheckKind, HealthStatus
from starforge.domain.job import RunIdentity
from starforge.domain.names import RunKey
from starforge.domain.observation import RunPhase, RunSeen, Seen
from starforge.domain.ports import FleetKind, LaunchOrder, Resume, StopAnswer
from starforge.domain.reason import ObjectRef, ReasonCode, reason
from starforge.domain.spec import FleetDefaults, JobSpec
from starforge.domain.teardown import Found, RemainingObject

START_S = 60.0
FETCH_SPARE_S = 3600.0


def _utc_now() -> datetime:
    return datetime.now(UTC)


class LocalFleet:
    """A Fleet (see the port). `runs` is where its run directories are, `gpus` what this machine has by series."""

    kind = FleetKind.LOCAL

    def __init__(
        self,
        runs: Path,
        *,
        gpus: Mapping[str, int],
        defaults: FleetDefaults,
        ca_file: Path | None = None,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self.name = defaults.fleet
        self._runs = runs.absolute()
        self._gpus = dict(gpus)
        self._defaults = defaults
        self._ca_file = str(ca_file) if ca_file else None
        self._now = now
        self._runs.mkdir(mode=0o700, parents=True, exist_ok=True)
        for grave in self._runs.glob(f"{GRAVE}*"):
            shutil.rmtree(grave, ignore_errors=True)  # somebody else may be at it

    def defaults(self) -> FleetDefaults:
        return self._defaults

    def signature_seconds(self, spec: JobSpec) -> float | None:
        clocks = (spec.deadlines.queue_seconds, spec.deadlines.pre_running_seconds)
        return sum(clocks) + FETCH_SPARE_S if all(clocks) else None

    def launch(self, order: LaunchOrder) -> RunIdentity:
        directory = self._directory(order.run)
        try:
            if directory.order() is None:
                self._create(directory, order)
            if directory.status() is None:
                _start_supervisor(directory)
        except OSError as error:
            raise FleetUnavailable(f"Run {order.name} can't be started on this machine: {error}.") from error
        return RunIdentity(order.name, None, self._uid(order.run))

    def stop(self, run: RunKey, *, grace_s: int) -> StopAnswer:
        directory = self._directory(run)
        status = directory.status()
        if status is None or status.phase is Phase.ENDED or not status.supervisor.alive:
            return StopAnswer.NOBODY_TO_ASK
        wish = directory.stop_wish()
        with suppress(FileNotFoundError):  # it ended and was removed meanwhile
            directory.write_stop(StopWish(grace_s, remove=wish is not None and wish.remove))
        return StopAnswer.ASKED if processes.send(status.supervisor, signal.SIGTERM) else StopAnswer.NOBODY_TO_ASK

    def delete(self, run: RunKey) -> None:
        directory = self._directory(run)
        if not directory.path.is_dir():
            return
        try:
            directory.write_stop(StopWish(0.0, remove=True))
            self._end(directory)
        except FileNotFoundError:
            return  # it ended and was removed meanwhile
        except OSError as error:
            raise FleetUnavailable(f"Run {run} can't be removed from this machine: {error}.") from error

    def remaining(self, run: RunKey) -> Sequence[RemainingObject]:
        directory = self._directory(run)
        status = directory.status()
        alive = processes_of(uid=self._uid(run), scratch=self._scratch(run), status=status)
        if status and status.supervisor.alive:
            alive = [status.supervisor, *alive]
        paths = [path for path in (directory.path, self._scratch(run)) if path.exists()]
        objects = [ObjectRef("Process", str(process.pid)) for process in dict.fromkeys(alive)]
        return [RemainingObject(each) for each in (*objects, *(ObjectRef("Directory", str(path)) for path in paths))]

    def ours(self, installation: str) -> Sequence[Found]:  # the directory of runs is one installation's alone
        orders = ((directory.order(), directory) for directory in self._directories())
        return [found(order, directory) for order, directory in orders if order]

    def look(self, run: RunKey) -> RunSeen:
        directory = self._directory(run)
        # In this order: a directory that still has its order had its status too, if there ever was one.
        status = directory.status()
        order = directory.order()
        if order is None:
            return RunSeen(run, RunPhase.ABSENT, self._now())
        return seen(order, status, self._now())

    def health(self, asked: Access | None = None) -> FleetProbe:
        """Whether the directory of the runs can be written, which is all that this machine needs."""
        began = time.monotonic()
        try:
            with tempfile.TemporaryFile(dir=self._runs) as file:
                file.write(b"x")
        except OSError as error:
            message = f"Runs can't be kept in {self._runs}: {error.strerror}. Check the disk and its rights."
            return FleetProbe((Finding(HealthCheckKind.STORAGE, HealthStatus.DOWN, message),))
        return FleetProbe((Finding(HealthCheckKind.STORAGE, seconds=time.monotonic() - began),))

    def watch(self, resume: Callable[[RunKey, str], Resume], stop: threading.Event) -> Iterator[Seen]:
        nodes = partial(node_views, self._gpus, logical=self._defaults.logical_gpus)
        return Watch(self._directories, resume, self._now, nodes).run(stop)

    def _end(self, directory: RunDir) -> None:
        """Has the run ended and removed, by its supervisor if that lives: one of the two sees what the other wrote."""
        status = directory.status()
        if status is None:
            with directory.lock() as mine:
                if mine:
                    directory.remove()
        elif status.phase is Phase.ENDED:
            directory.remove()
        elif is_orphaned(directory):
            reap(directory)
            directory.remove()
        else:
            processes.send(status.supervisor, signal.SIGTERM)

    def _create(self, directory: RunDir, order: LaunchOrder) -> None:
        """Makes the run directory whole or not at all; another launch of the same run may be faster."""
        self._refuse_if_never(order)
        draft = RunDir(self._runs / f".new-{self._uid(order.run)}-{os.getpid()}-{threading.get_ident()}")
        shutil.rmtree(draft.path, ignore_errors=True)
        draft.path.mkdir(mode=0o700)
        draft.write_order(self._order(order))
        draft.write_attempt(attempt_file(order, stream=directory.head_log, ca_file=self._ca_file))
        try:
            draft.path.rename(directory.path)
        except OSError:
            shutil.rmtree(draft.path)
            if directory.order() is None:
                raise

    def _order(self, order: LaunchOrder) -> RunOrder:
        return run_order(
            order,
            uid=self._uid(order.run),
            scratch=self._scratch(order.run),
            fleet_gpus=self._gpus,
            ca_file=self._ca_file,
            created_at=self._now().timestamp(),
        )

    def _refuse_if_never(self, order: LaunchOrder) -> None:
        want: dict[str, int] = {}
        for machine in machines(order.spec):
            want[machine.series] = want.get(machine.series, 0) + machine.gpus
        short = lacking(want, {}, self._gpus)
        if short:
            have = ", ".join(f"{series}:{count}" for series, count in self._gpus.items()) or "no GPUs"
            message = f"This machine can never run it. {short}"
            advice = f"Ask for what it has ({have}), or change FORGE_LOCAL_GPUS."
            raise FleetRefused(reason(ReasonCode.UNSCHEDULABLE, message, self._now(), advice=advice))
        secret = next((variable.name for variable in order.spec.env if variable.secret), None)
        if secret:
            message = f"The variable {secret} is to come from a Kubernetes Secret, which a local fleet does not have."
            raise FleetRefused(reason(ReasonCode.MISSING_REFERENCE, message, self._now()))

    def _directory(self, run: RunKey) -> RunDir:
        return RunDir(self._runs / self._uid(run))

    def _directories(self) -> list[RunDir]:
        return [RunDir(path) for path in sorted(self._runs.iterdir()) if not path.name.startswith(".")]

    def _uid(self, run: RunKey) -> str:
        """The same for the same run, so that what is left of it can be found when its directory is gone."""
        return hashlib.sha256(f"{self._runs} {run}".encode()).hexdigest()[:32]

    def _scratch(self, run: RunKey) -> Path:
        return scratch_path(self._uid(run))


def _start_supervisor(directory: RunDir) -> None:
    """Returns when the supervisor has taken charge, or has found that another one did."""
    command = [sys.executable, "-m", "starforge.adapters.local.supervisor", str(directory.path)]
    with directory.supervisor_log.open("ab") as output:
        subprocess.run(
            command, check=True, cwd="/", stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=START_S
        )
