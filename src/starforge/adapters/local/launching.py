"""Starts the two programs of a run: its Ray node and its runner."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from starforge.adapters.local import processes
from starforge.adapters.local.children import Ears
from starforge.adapters.local.environment import node_environment, runner_environment
from starforge.adapters.local.processes import Process
from starforge.adapters.local.rundir import RunDir, RunOrder
from starforge.adapters.local.scratch import ray_directory

HEAD_PROGRAM = Path(__file__).with_name("head.py")
RUNNER = ".starforge/runner.pex"
HEAD_S = 180.0


class RunFailed(Exception):
    """The run can't go on; `str()` is a sentence for a person."""


class HeadLost(Exception):
    """The Ray node ended while it was needed."""


@dataclass(frozen=True)
class Head:
    """A Ray node that was started; `ready` is the descriptor on which it tells its address."""

    process: Process
    ready: int


def start_head(order: RunOrder, run: RunDir, *, cwd: Path) -> Head:
    ready, told = os.pipe()
    node = {**asdict(order.node), "temp_dir": str(ray_directory(Path(order.scratch)))}
    # -P: the directory is the user's, whose modules must not take the place of Ray's.
    command = [sys.executable, "-P", str(HEAD_PROGRAM), json.dumps(node), str(told)]
    try:
        process = _spawn(command, cwd=cwd, env=node_environment(order), output=run.head_log, pass_fds=(told,))
    finally:
        os.close(told)
    return Head(process, ready)


def await_head(head: Head, *, ears: Ears, check: Callable[[], None]) -> str:
    """The address, as soon as Ray answers there; empty if the head ended, or did not answer within HEAD_S seconds."""
    with os.fdopen(head.ready) as ready:
        return _answer(ready.fileno(), ears, check)


def start_runner(order: RunOrder, run: RunDir, *, address: str, code: Path, archive: Path) -> Process:
    """Starts the Capsule's runner in the directory of the code, as the Ray job of a cluster would."""
    env = runner_environment(order, address=address, code=code, capsule=archive, attempt_file=run.attempt_file)
    python = shutil.which("python3", path=env["PATH"])
    if python is None:
        raise RunFailed(f"There is no python3 on the PATH of the job: {env['PATH']}.")
    # Its stdout repeats what it writes to the log as frames; its stderr is only used when it can't do its work.
    return _spawn([python, RUNNER], cwd=code, env=env, output=run.head_log, quiet=True)


def _spawn(
    command: list[str],
    *,
    cwd: Path,
    env: dict[str, str],
    output: Path,
    pass_fds: tuple[int, ...] = (),
    quiet: bool = False,
) -> Process:
    with output.open("ab") as log:
        child = subprocess.Popen(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if quiet else log,
            stderr=log,
            pass_fds=pass_fds,
            start_new_session=True,
        )
    child.returncode = 0  # Ears reaps it
    # It can't be gone yet: until Ears reaps it, its number stays its own.
    return processes.started(child.pid)


def _answer(ready: int, ears: Ears, check: Callable[[], None]) -> str:
    """What the head wrote until it closed the pipe, which it also does by ending."""
    deadline = time.monotonic() + HEAD_S
    while not ears.wait(deadline, ready):
        check()
        if time.monotonic() >= deadline:
            return ""
    return os.read(ready, 4096).decode()
