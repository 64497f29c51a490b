"""Collects what is known of a job: from the gateway, from the marks of its code, and from the cluster."""

import asyncio
import json
import ssl
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from loop.gateway import Gateway
from tests.e2e.faults.cluster import Cluster
from tests.e2e.faults.following import Story, patiently
from tests.e2e.faults.judging import Evidence, Log, Start
from tests.e2e.faults.scene import Scene

ANSWER_S = 90
KINDS = "rayjobs.ray.io,rayclusters.ray.io,pods,services,secrets,jobs.batch"
PAGE = 1000
JOB = """
query ($id: ID!) {
  job(id: $id) {
    state outcome attempt releasedAt rayJobName reason { code message }
    logArchive { state reason { message } }
    logSources { key sha256 gaps { message } download { url } }
  }
}"""
LINES = """
query ($id: ID!, $from: Int!) {
  job(id: $id) { logs(first: 1000, fromLine: $from) { nodes { number text } } }
}"""
Row = dict[str, Any]


async def collect(scene: Scene, story: Story, marks: Path) -> Evidence:
    """Everything, once the job has ended or nobody waits for it any longer."""
    gateway = scene.site.gateway
    job: Row = (await patiently(ANSWER_S, f"job {story.id}", lambda: gateway.ask(JOB, id=story.id)))["job"]
    driver = next((source for source in job["logSources"] if source["key"] == "driver"), None)
    log = Log(
        live=tuple(story.lines),
        read=await _lines(gateway, story.id) if driver else (),
        stored=await _stored(scene, driver) if driver else None,
        sha256=driver["sha256"] if driver else None,
        archive=job["logArchive"]["state"] if job["logArchive"] else "OPEN",
        gaps=tuple(gap["message"] for gap in driver["gaps"]) if driver else (),
        elsewhere=tuple(f"{source['key']}: {gap['message']}" for source in job["logSources"] for gap in source["gaps"]),
    )
    reason = job["reason"] or {"code": None, "message": None}
    return Evidence(
        story.id,
        job["state"],
        job["outcome"],
        reason["code"],
        reason["message"],
        job["attempt"],
        tuple(story.steps),
        starts(marks),
        log,
        await left(scene, story.id, job["rayJobName"]),
        datetime.fromisoformat(job["releasedAt"]).timestamp() if job["releasedAt"] else None,
    )


async def _lines(gateway: Gateway, job: str) -> tuple[tuple[int, str], ...]:
    found: list[tuple[int, str]] = []
    while True:
        first = found[-1][0] + 1 if found else 1
        page = await patiently(ANSWER_S, f"log of {job}", lambda: gateway.ask(LINES, id=job, **{"from": first}))  # noqa: B023
        nodes = page["job"]["logs"]["nodes"]
        found += [(node["number"], node["text"]) for node in nodes]
        if len(nodes) < PAGE:
            return tuple(found)


async def _stored(scene: Scene, source: Row) -> str | None:
    if not source["download"]:
        return None
    verify = ssl.create_default_context(cafile=scene.site.settings.get("FORGE_S3_CA_FILE"))
    async with httpx.AsyncClient(verify=verify, timeout=30) as http:

        async def fetch() -> str:
            return (await http.get(source["download"]["url"])).raise_for_status().text

        return await patiently(ANSWER_S, "the archived log", fetch)


def starts(marks: Path) -> tuple[Start, ...]:
    """Every start of a job's code, from what it left in its folder (scripts/e2e/code/lines)."""
    return tuple(_start(path.name.removeprefix("start-"), marks) for path in sorted(marks.glob("start-*")))


def _start(uuid: str, marks: Path) -> Start:
    printed, end = marks / f"printed-{uuid}", marks / f"end-{uuid}"
    # A row that was not written whole has no line end.
    rows = [row for row in (printed.read_text() if printed.exists() else "").splitlines(keepends=True) if "\n" in row]
    return Start(
        uuid,
        _time(marks / f"start-{uuid}") or 0.0,
        tuple(float(row.split()[1]) for row in rows),
        _time(end) if end.exists() else None,
    )


def _time(path: Path) -> float | None:
    """A mark may have been made and not yet, or never, been written."""
    text = path.read_text().strip()
    return float(text) if text else path.stat().st_mtime


async def left(scene: Scene, job: str, rayjob: str | None) -> tuple[str, ...]:
    """What there still is of a job: objects in the namespace, or directories of runs on this machine."""
    if scene.there is None:
        return await asyncio.to_thread(_runs_of, Path(scene.site.settings["FORGE_DATA_DIR"]) / "runs", job)
    return await patiently(ANSWER_S, "objects of the namespace", lambda: _objects_of(scene.cluster, job, rayjob))


async def _objects_of(cluster: Cluster, job: str, rayjob: str | None) -> tuple[str, ...]:
    items = json.loads(await cluster.ours("get", KINDS, "-o", "json"))["items"]
    return tuple(f"{one['kind']} {one['metadata']['name']}" for one in items if is_of(one, job, rayjob))


def is_of(item: Row, job: str, rayjob: str | None) -> bool:
    """By our label, or by the name that KubeRay makes of the RayJob's where it copies no labels."""
    labels = item["metadata"].get("labels") or {}
    named = rayjob is not None and (item["metadata"]["name"] + "-").startswith(rayjob + "-")
    return named or labels.get("starforge.io/job") == job


def _runs_of(runs: Path, job: str) -> tuple[str, ...]:
    orders = [path for path in runs.glob("*/run.json") if not path.parent.name.startswith(".")]
    return tuple(path.parent.name for path in orders if json.loads(path.read_text())["job"] == job)
