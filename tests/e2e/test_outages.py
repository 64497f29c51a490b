"""The API server and the object store go away in the middle of a job: it waits, says why, and goes on."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable
from pathlib import Path

import pytest

from tests.e2e.conftest import Cluster

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "scripts" / "e2e"))

from loop import checks
from loop.gateway import Gateway
from loop.jobs import Followed, pool, run, start
from loop.processes import starforge

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

CODE = """import time
import starforge
for number in range(40):
    print(f"line {number}", flush=True)
    starforge.progress(number + 1, 40)
    time.sleep(0.5)
"""


@pytest.fixture
def code(tmp_path: Path) -> Path:
    (tmp_path / "main.py").write_text(CODE)
    return tmp_path


@pytest.fixture
def restart() -> str:
    """The program that kills a process of the cluster and starts it again after some seconds."""
    program = os.environ.get("CLUSTER_RESTART")
    if program:
        return program
    if os.environ.get("CI_CLUSTER") == "1":
        pytest.fail("CLUSTER_RESTART names no program that restarts processes of the cluster")
    pytest.skip("CLUSTER_RESTART names no program that restarts processes of the cluster")


def spec(name: str) -> dict[str, object]:
    deadlines = {"preRunningSeconds": 300, "activeSeconds": 600}
    return {"name": name, "command": ["python3", "main.py"], "pools": [pool("train", "h200")], "deadlines": deadlines}


async def told(gateway: Gateway, story: Awaitable[Followed]) -> Followed:
    try:
        return await story
    finally:
        await gateway.close()


def whole(followed: Followed) -> None:
    assert followed.job["state"] == "SUCCEEDED", followed.job["reason"]
    assert [line for line in followed.lines if line.startswith("line ")] == [f"line {n}" for n in range(40)]


def test_an_api_server_that_is_away_for_ten_seconds(cluster: Cluster, restart: str, code: Path) -> None:
    async def story() -> Followed:
        followed, following = await start(gateway, spec("api-outage"), code)
        await asyncio.wait_for(followed.running.wait(), 240)
        await asyncio.to_thread(subprocess.run, [restart, "apiserver", "10"], check=True, timeout=60)
        await following
        await checks.after(followed, checks.settings_of({}))
        return followed

    with starforge({}) as gateway:
        whole(asyncio.run(told(gateway, story())))


def test_an_object_store_that_is_away_while_the_capsule_is_to_be_stored(
    cluster: Cluster, restart: str, code: Path
) -> None:
    (code / "note.txt").write_text(os.urandom(16).hex())  # so that neither code nor Capsule is stored already

    async def story() -> Followed:
        outage = asyncio.create_task(
            asyncio.to_thread(subprocess.run, [restart, "s3-https", "15"], check=True, timeout=60)
        )
        followed = await run(gateway, spec("store-outage"), code)
        await outage
        await checks.after(followed, checks.settings_of({}))
        return followed

    with starforge({}) as gateway:
        followed = asyncio.run(told(gateway, story()))
    whole(followed)
    assert any("object store" in reason.lower() for reason in followed.reasons), followed.reasons
