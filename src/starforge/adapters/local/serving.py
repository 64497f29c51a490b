"""The server of a playground: started on a port of the loopback that is free, and asked whether it answers."""

import http.client
import shutil
import socket
from pathlib import Path

from starforge.adapters.local.environment import node_environment, search_path
from starforge.adapters.local.launching import RunFailed, spawn
from starforge.adapters.local.processes import Process
from starforge.adapters.local.rundir import RunDir, RunOrder

HOST = "127.0.0.1"
PORT_WORD = "{port}"
"""Stands for the port in the command of an order, as that is chosen when the server is started."""
_ANSWERS_IN_S = 2.0


def start_server(order: RunOrder, run: RunDir, *, cwd: Path) -> tuple[Process, int]:
    """The server's process and its port. RunFailed if there is no such program."""
    env, port = node_environment(order), free_port()
    program, *args = (str(port) if word == PORT_WORD else word for word in order.server)
    found = shutil.which(program, path=env["PATH"])
    if found is None:
        raise RunFailed(
            f"There is no {program} on the PATH: {env['PATH']}. FORGE_PLAYGROUND_COMMAND names another one."
        )
    return spawn([found, *args], cwd=cwd, env=env, output=run.head_log), port


def program_path(program: str) -> str | None:
    """Where a program is that a playground may run; None if this machine does not have it."""
    return shutil.which(program, path=search_path())


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        port: int = taken.getsockname()[1]
        return port


def answers(port: int) -> bool:
    """Whether the server says that it is well."""
    connection = http.client.HTTPConnection(HOST, port, timeout=_ANSWERS_IN_S)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
