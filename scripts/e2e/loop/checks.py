"""What has to be true after every job, whatever became of it."""

import hashlib
import os
import ssl
from pathlib import Path
from typing import Any

import boto3
import httpx
from botocore.config import Config

from loop.jobs import END_STATES, Followed

PATH = ["SUBMITTED", "PACKAGING", "LAUNCHING", "PENDING", "RUNNING", "FINISHING"]
KINDS = {
    "RayJob": "/apis/ray.io/v1/namespaces/{}/rayjobs",
    "RayCluster": "/apis/ray.io/v1/namespaces/{}/rayclusters",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Service": "/api/v1/namespaces/{}/services",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
}


async def after(followed: Followed, settings: dict[str, str]) -> None:
    """AssertionError with the first thing that is not as promised."""
    job = followed.job
    _states(followed)
    assert followed.revisions == sorted(set(followed.revisions)), f"revisions {followed.revisions}"
    assert followed.revisions[-1] == job["revision"], f"last revision {followed.revisions[-1]}, now {job['revision']}"
    assert job["releasedAt"], "no time of release"
    assert job["logsArchivedAt"], "no time of archiving"
    assert job["logArchive"]["state"] == "COMPLETE", job["logArchive"]
    await _logs(followed, settings)
    await nothing_left(job["rayJobName"] or "no-such-name", settings)
    _stored_once(job, settings)


def _states(followed: Followed) -> None:
    states = followed.states
    assert states[-1] in END_STATES, states
    assert states == [span["state"] for span in followed.job["history"]], f"events {states}, history differs"
    path = states[:-1]
    assert len(set(states)) == len(states), f"a state came twice: {states}"
    assert path == [state for state in PATH if state in path], f"out of order: {states}"
    assert path[-1] == "FINISHING", states


async def _logs(followed: Followed, settings: dict[str, str]) -> None:
    assert followed.numbers == list(range(1, len(followed.numbers) + 1)), "a line came twice or not at all"
    verify: Any = ssl.create_default_context(cafile=settings.get("FORGE_S3_CA_FILE"))
    async with httpx.AsyncClient(verify=verify, timeout=60) as http:
        for source in followed.job["logSources"]:
            assert source["state"] == "CLOSED", source
            text = (await http.get(source["download"]["url"])).content
            assert hashlib.sha256(text).hexdigest() == source["sha256"], f"checksum of {source['key']}"
            assert text.count(b"\n") == source["lines"], f"lines of {source['key']}"
            if source["key"] == "driver":
                assert text.decode() == "".join(f"{line}\n" for line in followed.lines), "the archive differs"


def cluster(settings: dict[str, str]) -> httpx.AsyncClient:
    """A client of the Kubernetes API that the settings name."""
    context = ssl.create_default_context(cafile=settings.get("FORGE_K8S_CA_FILE"))
    token = settings.get("FORGE_K8S_TOKEN") or Path(settings["FORGE_K8S_TOKEN_FILE"]).read_text().strip()
    headers = {"authorization": f"Bearer {token}"}
    return httpx.AsyncClient(verify=context, headers=headers, base_url=settings["FORGE_K8S_API_SERVER"], timeout=60)


async def nodes(settings: dict[str, str]) -> list[dict[str, Any]]:
    """The nodes of the cluster."""
    async with cluster(settings) as http:
        found: list[dict[str, Any]] = (await http.get("/api/v1/nodes")).raise_for_status().json()["items"]
    return found


async def nothing_left(name: str, settings: dict[str, str]) -> None:
    """AssertionError if the namespace has anything of the RayJob `name`."""
    namespace = settings.get("FORGE_K8S_NAMESPACE", "starforge")
    async with cluster(settings) as http:
        for kind, path in KINDS.items():
            answer = await http.get(path.format(namespace))
            answer.raise_for_status()
            left = [item["metadata"]["name"] for item in answer.json()["items"]]
            mine = [one for one in left if one.startswith(name)]
            assert not mine, f"{kind} left in the cluster: {mine}"


def _stored_once(job: dict[str, Any], settings: dict[str, str]) -> None:
    if not job["capsule"]:
        return
    client = boto3.client(
        "s3",
        endpoint_url=settings["FORGE_S3_ENDPOINT"],
        aws_access_key_id=settings["FORGE_S3_ACCESS_KEY"],
        aws_secret_access_key=settings["FORGE_S3_SECRET_KEY"],
        region_name="us-east-1",
        verify=settings.get("FORGE_S3_CA_FILE") or True,
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
    )
    bucket = settings.get("FORGE_S3_BUCKET", "starforge")
    for prefix in (f"code/{job['capsule']['codeDigest']}", f"capsules/{job['capsule']['digest']}"):
        found = client.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])
        assert len(found) == 1, f"{prefix} is stored {len(found)} times"
    left = client.list_objects_v2(Bucket=bucket, Prefix="uploads/").get("Contents", [])
    assert not left, f"uploads left: {[one['Key'] for one in left]}"


def settings_of(extra: dict[str, str]) -> dict[str, str]:
    """The FORGE_* settings of a variant."""
    found = {name: value for name, value in os.environ.items() if name.startswith("FORGE_")} | extra
    return {name: value for name, value in found.items() if value}
