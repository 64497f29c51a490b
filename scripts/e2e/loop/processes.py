"""Gateway, worker, beat and watch as separate processes, under one variant of the settings."""

import os
import secrets
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from loop.gateway import Gateway
from starforge.cli.children import Children, wait_until
from starforge.cli.dev import free_port, start_redis

READY_S = 180


@contextmanager
def starforge(extra: Mapping[str, str]) -> Iterator[Gateway]:
    """Four processes on the settings of the environment and `extra`; a Redis and SQLite of their own unless set."""
    with tempfile.TemporaryDirectory(prefix="starforge-loop-") as folder:
        data = Path(folder)
        children = Children(data / "logs")
        token = os.environ.get("FORGE_BOOTSTRAP_TOKEN") or secrets.token_hex(16)
        env = {**os.environ, "FORGE_DATA_DIR": folder, "FORGE_PORT": str(free_port()), "FORGE_BOOTSTRAP_TOKEN": token}
        env |= extra
        try:
            env.setdefault("FORGE_REDIS_URL", start_redis(data, env, children))
            yield _start(children, env, token)
        except BaseException:
            for log in sorted((data / "logs").glob("*.log")):
                print(f"--- {log.name}\n{log.read_text(errors='replace')[-3000:]}", file=sys.stderr)
            raise
        finally:
            children.stop()


def _start(children: Children, env: Mapping[str, str], token: str) -> Gateway:
    program = [sys.executable, "-m", "starforge.cli.main"]
    for name, arguments in (("api", []), ("worker", ["--concurrency", "2"]), ("beat", ["--beat"]), ("watch", [])):
        verb = "worker" if name == "beat" else name
        children.start(name, [*program, verb, *arguments], env)
    base = f"http://127.0.0.1:{env['FORGE_PORT']}"
    wait_until(lambda: _ready(base), children, timeout_s=READY_S, what="the gateway")
    return Gateway(f"{base}/graphql", token)


def _ready(base: str) -> bool:
    try:
        return httpx.get(f"{base}/readyz", timeout=2).status_code == 200
    except httpx.HTTPError:
        return False
