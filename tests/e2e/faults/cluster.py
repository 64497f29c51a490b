"""The real cluster: its administrator's kubectl, its processes, and the settings that point StarForge at it."""

import asyncio
import json
import os
import secrets
import shlex
import signal
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starforge.adapters.local.processes import end, find

REPO = Path(__file__).parents[3]
COMMAND_S = 90
AGAIN_S = 1.0
ANSWERS_S = 120
SETUP_S = 240
OPERATOR_NAMESPACE = "kuberay-system"
OPERATOR = "deployment/kuberay-operator"
STORAGE_MOUNT = "/starforge"


async def becomes(limit_s: float, is_so: Callable[[], Awaitable[bool]]) -> None:
    """Return once it is so, which nothing tells us of; RuntimeError if it is not within `limit_s`."""
    try:
        async with asyncio.timeout(limit_s):
            while True:
                if await is_so():
                    return
                await asyncio.sleep(AGAIN_S)
    except TimeoutError:
        what = is_so.__name__.replace("_", " ")
        raise RuntimeError(f"waited {limit_s:.0f} s in vain: {what}") from None


async def run(command: Sequence[str], *, env: Mapping[str, str] | None = None, stdin: str = "", limit_s: float) -> str:
    """What a program prints; RuntimeError with its last words if it fails or does not end in time."""
    try:
        done = await asyncio.to_thread(
            subprocess.run, list(command), env=env and {**os.environ, **env}, input=stdin,
            capture_output=True, text=True, timeout=limit_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{' '.join(command)[:200]} did not end within {limit_s:.0f} s") from None
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)[:200]} ended with {done.returncode}: {done.stderr[-800:]}")
    return done.stdout


@dataclass
class Cluster:
    """`described` is the file that tells of the cluster, `restart` the program that starts one of its processes."""

    described: Path
    restart: str
    token_file: Path
    env: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    _token_secret: str = ""

    @property
    def home(self) -> Path:
        """Where the cluster keeps its state: pid/NAME, command/NAME, pki/, volumes/."""
        return self.described.parent

    @property
    def namespace(self) -> str:
        return self.settings["FORGE_K8S_NAMESPACE"]

    @property
    def marks(self) -> Path:
        """The folder of the storage claim on this machine's disk, which jobs see at STORAGE_MOUNT."""
        return self.home / "volumes" / "storage"

    async def prepare(self) -> None:
        """Rights, claims, and a token of our own in `token_file`; repairs what is missing."""
        script = 'set -a; . "$1"; env -0'
        told = await run(["bash", "-c", script, "_", str(self.described)], limit_s=COMMAND_S)
        self.env = dict(each.partition("=")[::2] for each in told.split("\0") if "=" in each)
        program = str(REPO / "scripts" / "e2e" / "use-cluster.sh")
        own = {"CLUSTER_ENV": str(self.described)}
        printed = await run(["bash", program, "--storage"], env=self.env | own, limit_s=SETUP_S)
        words = [shlex.split(row) for row in printed.splitlines() if row.startswith("export ")]
        self.settings = dict(word.partition("=")[::2] for _, word in words if word.startswith("FORGE_"))
        del self.settings["FORGE_K8S_TOKEN"]
        self.settings["FORGE_K8S_TOKEN_FILE"] = str(self.token_file)
        await self.replace_token()

    async def kubectl(self, *arguments: str, stdin: str = "", limit_s: float = COMMAND_S) -> str:
        return await run(["kubectl", *arguments], env=self.env, stdin=stdin, limit_s=limit_s)

    async def ours(self, *arguments: str, stdin: str = "") -> str:
        """kubectl in the namespace of the jobs."""
        return await self.kubectl("-n", self.namespace, *arguments, stdin=stdin)

    async def apply(self, thing: dict[str, Any]) -> None:
        await self.kubectl("apply", "-f", "-", stdin=json.dumps(thing))

    async def kill(self, name: str) -> None:
        """Kill a process of the cluster, for example `apiserver`, unless it is dead already; return once it is gone."""
        found = find(int((self.home / "pid" / name).read_text()))
        if found:
            await asyncio.to_thread(end, [found], signal.SIGKILL, within_s=COMMAND_S)

    async def start(self, name: str) -> None:
        """Start it again; if it runs, it is killed first, as two can't listen on one port."""
        await self.kill(name)
        await run([self.restart, name, "0"], env={"CLUSTER_RUN": str(self.home)}, limit_s=COMMAND_S)

    async def answers(self) -> None:
        """Return once the API server is ready again."""

        async def is_ready() -> bool:
            try:
                await self.kubectl("get", "--raw=/readyz", "--request-timeout=5s", limit_s=10)
            except RuntimeError:
                return False
            return True

        await becomes(ANSWERS_S, is_ready)

    async def scale_operator(self, replicas: int) -> None:
        there = ("-n", OPERATOR_NAMESPACE)
        await self.kubectl(*there, "scale", OPERATOR, f"--replicas={replicas}")
        if replicas:
            await self.kubectl(*there, "rollout", "status", OPERATOR, "--timeout=80s")
            return

        async def is_gone() -> bool:
            return not (await self.kubectl(*there, "get", "pods", "-o", "name")).strip()

        await becomes(COMMAND_S, is_gone)

    async def pod_of(self, job: str, role: str) -> str:
        """Name of a job's Pod; `role` is head or worker."""
        which = f"starforge.io/job={job},ray.io/node-type={role}"
        return (await self.ours("get", "pod", "-l", which, "-o", "jsonpath={.items[0].metadata.name}")).strip()

    async def clear(self) -> None:
        """Remove every run, so that one that is stuck is in nobody's way."""
        await self.ours("delete", "rayjobs", "-l", "starforge.io/managed=true", "--wait=false")

    async def revoke_token(self) -> None:
        """A token dies with the object that it is bound to."""
        await self.ours("delete", "secret", self._token_secret, "--ignore-not-found")

    async def replace_token(self) -> None:
        """A new token in `token_file`, bound to a Secret of its own."""
        self._token_secret = f"faults-token-{secrets.token_hex(4)}"
        await self.ours("create", "secret", "generic", self._token_secret)
        bound = ("--bound-object-kind=Secret", f"--bound-object-name={self._token_secret}", "--duration=24h")
        token = await self.ours("create", "token", "starforge", *bound)
        fresh = self.token_file.with_suffix(".new")
        fresh.touch(mode=0o600)
        fresh.write_text(token.strip())
        fresh.replace(self.token_file)


def find_cluster(token_file: Path) -> Cluster | None:
    """The cluster that CLUSTER_ENV and CLUSTER_RESTART name, if there is one."""
    described = Path(os.environ.get("CLUSTER_ENV", "/var/lib/starforge-cluster/env"))
    restart = os.environ.get("CLUSTER_RESTART", "")
    return Cluster(described, restart, token_file) if described.is_file() and Path(restart).is_file() else None
