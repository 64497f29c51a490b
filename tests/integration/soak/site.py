"""A gateway as a process of its own (`starforge api`) beside a Redis, and a fast fleet that workers of ours drive."""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from redis.asyncio import Redis

from tests.integration.gateway import PATIENCE_S, TOKEN, Platform, platform
from tests.integration.soak.wires import plain_http
from tests.servers import RedisServer, wait_for_port

NO_LIMIT = str(2**31 - 1)
COMPLAINT = re.compile("Traceback|never retrieved|never awaited|was destroyed| ERROR | CRITICAL ")
LOOKS = 4
"""Times that the usual patience with a server that starts is had, for a machine that does much else."""
AGAIN_S = 0.1
"""Between two looks at what nothing tells us of."""


@dataclass
class GatewayProcess:
    """Listens on the same port each time; all that it ever logs is in one file."""

    port: int
    env: dict[str, str]
    log: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "starforge.cli.main", "api"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                command, env={**os.environ, **self.env}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        for _ in range(LOOKS):
            with contextlib.suppress(TimeoutError):
                wait_for_port(self.port, self.process)
                return
        raise TimeoutError("the gateway does not listen; see its log")

    def freeze(self) -> None:
        """Return once it stands still, or has ended."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def terminate(self) -> None:
        """Ask it to end as an orchestrator does, and return at once."""
        assert self.process is not None
        self.process.terminate()

    def end(self, number: signal.Signals) -> int:
        """Its exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE_S)

    def stop(self) -> None:
        """End it, however it is."""
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait(timeout=PATIENCE_S)

    def rss(self) -> int:
        """Bytes of memory that it has resident."""
        assert self.process is not None
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def complaints(self) -> list[str]:
        """What must not be in a log."""
        return [line for line in self.log.read_text(errors="replace").splitlines() if COMPLAINT.search(line)]


@dataclass(frozen=True)
class Site:
    gateway: GatewayProcess
    platform: Platform

    @property
    def redis(self) -> RedisServer:
        return self.platform.redis

    async def answer(self, query: str, /, **variables: Any) -> Any:
        """The data of a query or of a mutation that may be sent again, once a gateway has it for us."""
        body = {"query": query, "variables": variables}
        headers = {"authorization": f"Bearer {TOKEN}"}
        async with asyncio.timeout(PATIENCE_S), plain_http(timeout_s=20) as http:
            while True:
                try:
                    answer = (await http.post(f"{self.gateway.url}/graphql", json=body, headers=headers)).json()
                except httpx.TransportError:
                    await asyncio.sleep(AGAIN_S)
                    continue
                assert "errors" not in answer, answer
                return answer["data"]

    async def metrics(self) -> dict[str, float]:
        """The gateway's own numbers, by name and labels."""
        async with plain_http(timeout_s=20) as http:
            text = (await http.get(f"{self.gateway.url}/metrics")).text
        lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
        return {name: float(value) for name, _, value in lines}

    async def hearers(self) -> int:
        """Connections that Redis tells of the feed."""
        async with Redis.from_url(self.redis.url, socket_timeout=10) as redis:
            return len(await redis.client_list(_type="pubsub"))


def site_settings(there: Platform) -> dict[str, str]:
    """The environment of a gateway whose clients may ask as much as they like."""
    return {**there.settings(), "FORGE_RATE_LIMIT_POINTS": NO_LIMIT, "FORGE_RATE_LIMIT_PER_SECOND": NO_LIMIT}


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """Everything at work; the gateway is ended with the block, however it is."""
    with platform(folder / "platform", folder / "runner") as running:
        gateway = GatewayProcess(running.port, site_settings(running), folder / "gateway.log")
        try:
            gateway.start()
            yield Site(gateway, running)
        finally:
            gateway.stop()
