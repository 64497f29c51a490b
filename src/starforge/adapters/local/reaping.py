"""Ends what is left of a run whose supervisor was killed, in its place."""

import time
from dataclasses import replace
from pathlib import Path

from starforge.adapters.local import processes
from starforge.adapters.local.environment import marker
from starforge.adapters.local.processes import Process
from starforge.adapters.local.rundir import Ending, Phase, RunDir, Status
from starforge.adapters.local.scratch import remove_scratch

GRACE_S = 1.0
RUNNER_REFUSED = (113, 114, 115)  # runner/__main__.py


def is_orphaned(run: RunDir) -> bool:
    """Whether a supervisor began the run and died before it could end it."""
    status = run.status()
    return status is not None and status.phase is not Phase.ENDED and not status.supervisor.alive


def reap(run: RunDir) -> None:
    """Ends every process of an orphaned run, removes its scratch directory and writes its end; safe to repeat.

    OSError if a process can't be ended.
    """
    with run.lock() as mine:
        order, status = run.order(), run.status()
        if not mine or order is None or status is None or status.phase is Phase.ENDED or status.supervisor.alive:
            return
        left = processes.end_all(
            lambda: processes_of(uid=order.uid, scratch=Path(order.scratch), status=status), grace_s=GRACE_S
        )
        if left:
            raise OSError(f"processes {[process.pid for process in left]} of run {order.name} can't be ended")
        remove_scratch(Path(order.scratch))
        run.write_status(_ended(status))


def processes_of(*, uid: str, scratch: Path, status: Status | None) -> list[Process]:
    """Every live process of the run, and what they started; the supervisor is none of them."""
    leaders = (status.head, status.runner) if status else ()
    sessions = {leader.pid for leader in leaders if leader}
    found = processes.holders(marker=marker(uid), scratch=scratch, sessions=sessions)
    below = [process for root in found for process in processes.descendants(root.pid)]
    return list(dict.fromkeys((*found, *below)))


def _ended(status: Status) -> Status:
    ended = replace(status, phase=Phase.ENDED, ended_at=time.time())
    if status.exit_code is None:
        return replace(ended, ending=Ending.HEAD_LOST, message="The supervisor of the run was killed.")
    ending, message = verdict(status.exit_code)
    return replace(ended, ending=ending, message=message)


def verdict(exit_code: int) -> tuple[Ending, str | None]:
    """What the runner's exit code says about the run."""
    if exit_code == 0:
        return Ending.SUCCEEDED, None
    if exit_code in RUNNER_REFUSED:
        return Ending.FAILED, "The runner did not start the command; its last line says why."
    return Ending.FAILED, f"The command ended with exit code {exit_code}."
