"""The parent of a supervisor: if that is killed, whatever it had adopted comes to this process, which ends it.

Two killed at once leave what reaping.py can still recognise by its marks.
"""

import os
import signal

from starforge.adapters.local import processes
from starforge.adapters.local.children import adopt_orphans
from starforge.adapters.local.reaping import GRACE_S, reap
from starforge.adapters.local.rundir import RunDir


def fork_kept(run: RunDir, pipe: int) -> None:
    """Returns in a child, which has `pipe` for itself; this process then only waits for it to end, and ends with it."""
    adopt_orphans()
    child = os.fork()
    if child == 0:
        return
    os.close(pipe)
    # A wish to stop is for the child, which carries it out.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _pid, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        processes.end_all(lambda: processes.descendants(os.getpid()), grace_s=GRACE_S)
        if run.path.is_dir():
            reap(run)
    os._exit(0 if code == 0 else 1)
