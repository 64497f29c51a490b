"""Peers: other servers of the same subset, fetched and built in the cache at their first use."""

import contextlib
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from gateway.documents import TOKEN
from gateway.ours import JOBS, Site, rows
from gateway.processes import Server
from gateway.publisher import CHANNEL
from gateway.tools import CACHE, HERE

from tests.servers import free_port, redis_server

FETCH_S = 900
SOURCES = HERE / "peers"
SDL = SOURCES / "schema.graphql"


def built(name: str, *steps: list[str]) -> Path:
    """A copy of the peer's sources in the cache, on which `steps` were run since its sources last changed."""
    there, source = CACHE / name, SOURCES / name
    parts = [path.read_bytes() for path in [SDL, *sorted(source.rglob("*"))] if path.is_file()]
    digest = hashlib.sha256(json.dumps(steps).encode() + b"".join(parts)).hexdigest()
    stamp = there / ".built"
    if stamp.exists() and stamp.read_text() == digest:
        return there
    shutil.rmtree(there, ignore_errors=True)
    shutil.copytree(source, there)
    shutil.copy(SDL, there)
    print(f"building {name} in {there}", file=sys.stderr, flush=True)
    for step in steps:
        subprocess.run(step, cwd=there, check=True, timeout=FETCH_S, stdout=sys.stderr)
    stamp.write_text(digest)
    return there


def ariadne_command() -> list[str]:
    install = ["venv/bin/python", "-m", "pip", "install", "--quiet", "--requirement", "requirements.txt"]
    there = built("ariadne", [sys.executable, "-m", "venv", "venv"], install)
    return [str(there / "venv/bin/python"), str(there / "server.py")]


def mercurius_command() -> list[str]:
    there = built("mercurius", ["npm", "install", "--no-package-lock", "--no-audit", "--no-fund"])
    return ["node", str(there / "server.js")]


def gqlgen_command() -> list[str]:
    there = built("gqlgen", ["go", "tool", "gqlgen", "generate"], ["go", "build", "-o", "server", "."])
    return [str(there / "server")]


def peer(
    name: str, command: Callable[[], list[str]], path: str = "/graphql", **env: str
) -> Callable[[Path], contextlib.AbstractContextManager[Site]]:
    """A peer in a fresh folder, like `starforge` of ours."""

    @contextlib.contextmanager
    def site(folder: Path) -> Iterator[Site]:
        ids = tuple(f"job-{number:020}" for number in reversed(range(JOBS)))
        (folder / "rows.json").write_text(rows(ids))
        with redis_server(folder) as redis:
            port = free_port()
            given = {
                "PORT": str(port), "REDIS_URL": redis.url, "ROWS": str(folder / "rows.json"), "SDL": str(SDL),
                "TOKEN": TOKEN, "CHANNEL": CHANNEL, **env,
            }  # fmt: skip
            server = Server(command(), port, env=given, log=folder / "server.log", cwd=folder)
            try:
                yield Site(name, server, redis, path, ids, (TOKEN,), {}, "peer", "peer", resume=False)
            finally:
                server.stop()

    return site
