"""Every process of an installation over the simulated fleet, each to be killed and started again at any moment."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from starforge.adapters.settings import load_settings
from starforge.adapters.wiring import Parts, build, prepare
from tests.integration.gateway import TOKEN
from tests.servers import RedisServer, free_port, redis_server

NO_LIMIT = str(2**31 - 1)
VERBS: dict[str, tuple[str, ...]] = {
    "gateway": ("api",),
    "worker-1": ("worker", "--concurrency", "2"),
    "worker-2": ("worker", "--concurrency", "2"),
    "beat-1": ("worker", "--beat"),
    "beat-2": ("worker", "--beat"),
    "watch-1": ("watch",),
    "watch-2": ("watch",),
}
PATIENCE_S = 30


@dataclass
class Mortal:
    """A process in a session of its own; all that it ever logs is in one file."""

    name: str
    env: dict[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None
    groups: list[int] = field(default_factory=list)

    def start(self) -> None:
        command = [sys.executable, "-m", "starforge.cli.main", *VERBS[self.name]]
        env = {name: value for name, value in os.environ.items() if not name.startswith("FORGE_")}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, env={**env, **self.env}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        self.groups.append(self.process.pid)

    def kill(self) -> None:
        """SIGKILL to it and to everything that was ever started for it, as when its machine is lost."""
        for group in self.groups:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
        self.groups.clear()
        if self.process:
            self.process.wait(timeout=PATIENCE_S)

    def kill_alone(self) -> None:
        """SIGKILL to it; what it started has to notice by itself."""
        if self.process:
            self.process.kill()
            self.process.wait(timeout=PATIENCE_S)


@dataclass
class Mortals:
    data: Path
    redis: RedisServer
    port: int = field(default_factory=free_port)
    all: dict[str, Mortal] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.all = {name: Mortal(name, self.settings, self.data / f"{name}.log") for name in VERBS}

    @property
    def settings(self) -> dict[str, str]:
        return {
            "FORGE_DEFAULT_FLEET_KIND": "simulated",
            "FORGE_DATA_DIR": str(self.data),
            "FORGE_REDIS_URL": self.redis.url,
            "FORGE_PORT": str(self.port),
            "FORGE_BOOTSTRAP_TOKEN": TOKEN,
            "FORGE_RATE_LIMIT_POINTS": NO_LIMIT,
            "FORGE_RATE_LIMIT_PER_SECOND": NO_LIMIT,
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/graphql"

    def parts(self) -> Parts:
        """What each of the processes has, to look at what they did."""
        return build(load_settings(self.settings))


@contextmanager
def mortals(data: Path) -> Iterator[Mortals]:
    """All of them at work; killed with the block, however it ends."""
    data.mkdir(parents=True, exist_ok=True)
    with redis_server(data) as redis:
        there = Mortals(data, redis)
        prepare(load_settings(there.settings))
        try:
            for one in there.all.values():
                one.start()
            yield there
        finally:
            for one in there.all.values():
                one.kill()
