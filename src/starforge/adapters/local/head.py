"""The Ray node of one run: started by the supervisor as a program, holds the node until SIGTERM.

It is a program of its own and imports nothing of ours, as its path must not be mixed with the user's. Unlike
`ray start` it listens on the loopback alone, takes free ports for everything (so any number of them run side by side),
and starts neither dashboard, autoscaler nor Ray Client: half the time and memory. Ray's own processes die with it.

Arguments: the node as JSON {temp_dir, cpus, gpus, memory, object_store_memory, pools}, and the file descriptor to which
it writes the address once Ray answers.
"""

import ctypes
import json
import os
import select
import signal
import sys
from types import FrameType
from typing import Any, NoReturn

from ray._private.node import Node
from ray._private.parameter import RayParams

LOOPBACK = "127.0.0.1"
PR_SET_PDEATHSIG = 1


class LoopbackNode(Node):
    def start_api_server(self, *, include_dashboard: bool | None, raise_on_failure: bool) -> None:
        """No dashboard: nothing reads it, and it takes seconds."""
        self._webui_url = ""


def start(node: dict[str, Any]) -> LoopbackNode:
    params = RayParams(
        node_ip_address=LOOPBACK,
        node_name=LOOPBACK,
        temp_dir=node["temp_dir"],
        num_cpus=node["cpus"],
        num_gpus=node["gpus"],
        memory=node["memory"],
        object_store_memory=node["object_store_memory"],
        resources=node["pools"],
        gcs_server_port=0,
        min_worker_port=0,
        max_worker_port=0,
        dashboard_agent_listen_port=0,
        include_dashboard=False,
        no_monitor=True,
    )
    return LoopbackNode(params, head=True, shutdown_at_exit=True, spawn_reaper=True)


def main() -> NoReturn:
    die_with_parent()
    node = start(json.loads(sys.argv[1]))
    signal.signal(signal.SIGTERM, leave)
    with os.fdopen(int(sys.argv[2]), "w") as ready:
        ready.write(node.address)
    watch(node)


def watch(node: LoopbackNode) -> NoReturn:
    """Ends as soon as a process of Ray has ended, as the node is lost then."""
    handles = [os.pidfd_open(info.process.pid) for infos in node.all_processes.values() for info in infos]
    select.select(handles, [], [])
    dead: list[tuple[str, Any]] = node.dead_processes()  # type: ignore[no-untyped-call]
    names = ", ".join(f"{kind} (exit code {process.returncode})" for kind, process in dead)
    sys.exit(f"starforge: Ray processes ended: {names}")


def leave(_number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(0)


def die_with_parent() -> None:
    parent = os.getppid()
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:
        sys.exit("starforge: the supervisor has ended")


if __name__ == "__main__":
    main()
