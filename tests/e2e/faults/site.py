"""A whole StarForge of separate processes on a real Redis, a real Postgres and the fleet that the settings name."""

import asyncio
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from redis import Redis

from loop.gateway import Gateway
from tests.contract.store.postgres import PostgresServer, postgres_server
from tests.e2e.faults.cluster import becomes
from tests.e2e.faults.processes import OURS, Process
from tests.servers import RedisServer, free_port, redis_server

READY_S = 240
LOCAL = {"FORGE_DEFAULT_FLEET_KIND": "local", "FORGE_LOCAL_GPUS": "h200:2,b200:1"}
TAIL_BYTES = 3000


@dataclass
class Site:
    """`marks` is the folder in which jobs leave their marks, and `marks_inside` where they see it themselves."""

    folder: Path
    gateway: Gateway
    processes: dict[str, Process]
    redis: RedisServer
    postgres: PostgresServer
    settings: dict[str, str]
    marks: Path
    marks_inside: str

    async def ready(self) -> None:
        """Return once every process is up and the gateway can do its work."""
        url = f"http://127.0.0.1:{self.settings['FORGE_PORT']}/readyz"
        async with httpx.AsyncClient(timeout=5) as http:

            async def are_ready() -> bool:
                return all(one.is_up for one in self.processes.values()) and await _is_ready(http, url)

            await becomes(READY_S, are_ready)

    async def empty_redis(self) -> None:
        """What a failover to an empty replica leaves."""
        with Redis.from_url(self.redis.url, socket_timeout=10) as redis:
            await asyncio.to_thread(redis.flushall)

    def last_words(self) -> str:
        """The end of each log of ours."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {log.name}\n{log.read_bytes()[-TAIL_BYTES:].decode(errors='replace')}" for log in logs)


async def _is_ready(http: httpx.AsyncClient, url: str) -> bool:
    try:
        return (await http.get(url)).status_code == 200
    except httpx.HTTPError:
        return False


@contextmanager
def site(folder: Path, fleet: Mapping[str, str], marks: Path, marks_inside: str) -> Iterator[Site]:
    """Everything started, and stopped with the block. `fleet` are the settings of the fleet and its object store."""
    with postgres_server(durable=True) as postgres, redis_server(folder) as redis:
        own = {
            # Machines that find no node are to wait as Pods here, not as jobs in a queue, unless that is asked for.
            "FORGE_QUEUE": fleet.get("FORGE_QUEUE", "off"),
            "FORGE_DATA_DIR": str(folder / "data"),
            "FORGE_DATABASE_URL": postgres.url,
            "FORGE_REDIS_URL": redis.url,
            "FORGE_PORT": str(free_port()),
            "FORGE_BOOTSTRAP_TOKEN": secrets.token_hex(16),
        }
        settings = {**fleet, **own}
        env = {name: value for name, value in os.environ.items() if not name.startswith("FORGE_")} | settings
        processes = {name: Process(name, words, env, folder / f"{name}.log") for name, words in OURS.items()}
        gateway = Gateway(f"http://127.0.0.1:{settings['FORGE_PORT']}/graphql", settings["FORGE_BOOTSTRAP_TOKEN"])
        try:
            for process in processes.values():
                process.start()
            yield Site(folder, gateway, processes, redis, postgres, settings, marks, marks_inside)
        finally:
            for process in reversed(processes.values()):
                process.stop()


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for one run of the table."""
    with tempfile.TemporaryDirectory(prefix="starforge-faults-") as folder:
        yield Path(folder)
