"""The process that owns one run from start to end: `python -m starforge.adapters.local.supervisor <run directory>`.

It runs in a session of its own, outlives whoever started it, and tells everything by status.json. Whatever happens,
every process below it has ended and the scratch directory is gone before it says ENDED.
"""

import math
import os
import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from starforge.adapters.local import processes
from starforge.adapters.local.admission import Admission
from starforge.adapters.local.children import Ears, adopt_orphans
from starforge.adapters.local.keeper import fork_kept
from starforge.adapters.local.launching import HeadLost, RunFailed, await_head, start_head, start_runner
from starforge.adapters.local.reaping import processes_of, verdict
from starforge.adapters.local.rundir import Ending, Phase, RunDir, RunOrder, Status, StopWish
from starforge.adapters.local.scratch import make_scratch, ray_directory, remove_scratch
from starforge.adapters.local.unpacking import CapsuleUnusable, fetch, unpack
from starforge.domain.errors import ObjectStoreUnavailable

LEFTOVERS_GRACE_S = 1.0
DRAIN_S = 15.0
HEAD_TRIES = 3
QUEUE_LOOK_S = 1.0
STORE_FIRST_S, STORE_LONGEST_S = 1.0, 15.0


class Stopped(Exception):
    """A wish to stop came before the command was started."""


class Supervisor:
    def __init__(self, run: RunDir, order: RunOrder, ears: Ears) -> None:
        self._run = run
        self._order = order
        self._ears = ears
        self._scratch = Path(order.scratch)
        self._was_stopped = False
        self._status = Status(Phase.PREPARING, processes.started(os.getpid()), order.scratch)

    def begin(self) -> None:
        """From here on the run is ours, and a wish to stop reaches us."""
        self._tell(Phase.PREPARING)

    def run(self) -> None:
        """Everything, to the end."""
        message: str | None = "The supervisor of the run failed; supervisor.log in its directory says why."
        ending = Ending.FAILED
        with ExitStack() as place:
            try:
                ending, message = self._attempt(place)
            finally:
                self._clean_up(ending, message)

    def _attempt(self, place: ExitStack) -> tuple[Ending, str | None]:
        try:
            place.enter_context(Admission(self._run.path.parent).wait(self._order, self._wait_in_queue))
            return self._admitted()
        except Stopped:
            return Ending.STOPPED, "The run was stopped before its command was started."
        except HeadLost as error:
            return Ending.HEAD_LOST, str(error)
        except (RunFailed, CapsuleUnusable) as error:
            return Ending.FAILED, str(error)

    def _admitted(self) -> tuple[Ending, str | None]:
        self._tell(Phase.PREPARING, message=None, admitted_at=time.time())
        archive, code = self._prepare()
        self._tell(Phase.STARTING, message=None)
        head, address = self._start_ray(code)
        self._tell(Phase.STARTING, address=address, ready_at=time.time())
        self._check()
        runner = start_runner(self._order, self._run, address=address, code=code, archive=archive)
        self._tell(Phase.RUNNING, runner=runner, command_at=time.time())
        exit_code = self._follow(runner.pid, head.pid)
        self._tell(Phase.ENDING, exit_code=exit_code)
        return self._verdict(exit_code)

    def _prepare(self) -> tuple[Path, Path]:
        make_scratch(self._scratch)
        archive, code = self._scratch / "capsule.zip", self._scratch / "code"
        pause_s = STORE_FIRST_S
        while (away := self._fetch(archive)) is not None:
            self._await_store(away, pause_s)
            pause_s = min(2 * pause_s, STORE_LONGEST_S)
        unpack(archive, code, check=self._check)
        return archive, code

    def _fetch(self, archive: Path) -> ObjectStoreUnavailable | None:
        """Why the object store can't be asked right now; None if it gave the Capsule."""
        order = self._order
        try:
            fetch(
                order.capsule_url,
                order.capsule_headers,
                archive,
                sha256=order.transport_sha256,
                ca_file=order.ca_file,
                check=self._check,
            )
        except ObjectStoreUnavailable as away:
            return away
        return None

    def _await_store(self, away: ObjectStoreUnavailable, pause_s: float) -> None:
        """Until whoever ordered the run has it stopped, as only they know its clocks."""
        self._rest(Phase.AWAITING_STORE, away.message, pause_s)

    def _start_ray(self, code: Path) -> tuple[processes.Process, str]:
        """The Ray node and its address. On a busy machine Ray gives up by itself, so it gets more than one try."""
        for _ in range(HEAD_TRIES):
            head = start_head(self._order, self._run, cwd=code)
            self._tell(Phase.STARTING, head=head.process)
            address = await_head(head, ears=self._ears, check=self._check)
            if address:
                return head.process, address
            processes.end_all(self._leftovers, grace_s=LEFTOVERS_GRACE_S)
            remove_scratch(ray_directory(self._scratch))
        raise RunFailed(f"Ray did not start on this machine in {HEAD_TRIES} tries; the log of the head says why.")

    def _follow(self, runner: int, head: int) -> int:
        """The runner's exit code, 128+n for signal n. HeadLost if Ray ended first; a wish to stop is carried out."""
        kill_at: float | None = None
        while (code := self._ears.code_of(runner)) is None:
            if self._ears.code_of(head) is not None:
                raise HeadLost("The Ray node of the run ended while its command ran; the log of the head says why.")
            if self._ears.stop_wished:
                self._ears.stop_wished = False
                self._was_stopped = True
                kill_at = min(self._ask_runner(runner), kill_at or math.inf)
            if kill_at is not None and kill_at <= time.monotonic():
                kill_at = self._kill_command(runner)
            self._ears.wait(kill_at)
        return code if code >= 0 else 128 - code

    def _ask_runner(self, runner: int) -> float:
        """Asks the runner, which asks the command; when to lose patience."""
        process = processes.find(runner)
        if process is not None:
            processes.send(process, signal.SIGTERM)
        return time.monotonic() + self._wish().grace_s

    def _kill_command(self, runner: int) -> float:
        """Kills what the runner started, so that it can still report that; the runner itself the next time."""
        command = processes.descendants(runner)
        itself = processes.find(runner)
        processes.end(command or ([itself] if itself else []), signal.SIGKILL, within_s=DRAIN_S)
        return time.monotonic() + DRAIN_S

    def _verdict(self, exit_code: int) -> tuple[Ending, str | None]:
        if exit_code and self._was_stopped:
            return Ending.STOPPED, "The command was stopped."
        return verdict(exit_code)

    def _wait_in_queue(self, why: str) -> None:
        self._rest(Phase.QUEUED, why, QUEUE_LOOK_S)

    def _rest(self, phase: Phase, why: str, pause_s: float) -> None:
        self._check()
        if self._status.phase is not phase or self._status.message != why:
            self._tell(phase, message=why)
        self._ears.wait(time.monotonic() + pause_s)
        self._check()

    def _check(self) -> None:
        if self._ears.stop_wished or self._run.stop_wish() is not None:
            raise Stopped

    def _wish(self) -> StopWish:
        return self._run.stop_wish() or StopWish(self._order.grace_s)

    def _clean_up(self, ending: Ending, message: str | None) -> None:
        if self._status.phase is not Phase.ENDING:
            self._tell(Phase.ENDING)
        left = processes.end_all(self._leftovers, grace_s=LEFTOVERS_GRACE_S)
        if left:
            pids = ", ".join(str(process.pid) for process in left)
            raise OSError(f"processes {pids} of run {self._order.name} can't be ended")
        remove_scratch(self._scratch)
        self._tell(Phase.ENDED, ending=ending, message=message, ended_at=time.time())
        wish = self._run.stop_wish()
        if wish is not None and wish.remove:
            self._run.remove()

    def _leftovers(self) -> list[processes.Process]:
        self._ears.code_of(0)  # zombies go first
        return list(dict.fromkeys((*processes.descendants(os.getpid()), *self._marked())))

    def _marked(self) -> list[processes.Process]:
        found = processes_of(uid=self._order.uid, scratch=self._scratch, status=self._status)
        return [process for process in found if process.pid != os.getpid()]

    def _tell(self, phase: Phase, **news: object) -> None:
        self._status = replace(self._status, phase=phase, **news)  # type: ignore[arg-type]
        self._run.write_status(self._status)


def main() -> int:
    run = RunDir(Path(sys.argv[1]))
    ready, told = os.pipe()
    if os.fork():
        # Whoever started us waits for this half only: it ends when the other one has taken charge.
        os.close(told)
        os.read(ready, 1)
        return 0
    os.close(ready)
    os.setsid()
    fork_kept(run, told)
    adopt_orphans()
    with run.lock() as mine, Ears() as ears:
        order = run.order()
        if not mine or order is None or run.status() is not None:
            return 0
        supervisor = Supervisor(run, order, ears)
        supervisor.begin()
        os.close(told)
        supervisor.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
