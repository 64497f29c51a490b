"""Submits a job and follows it to its end over three subscriptions, as a dashboard would."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loop.gateway import Gateway, within

JOB_S = 420
END_STATES = {"SUCCEEDED", "FAILED", "CANCELED"}

SUBMIT = """
mutation ($input: SubmitJobInput!) {
  submitJob(input: $input) { status job { id } userErrors { code field message } }
}"""
FEED = "{ feed { cursor } }"
EVENTS = """
subscription ($jobs: [ID!], $after: String) {
  events(filter: {workloads: $jobs}, after: $after) {
    cursor kind
    event { __typename id message ... on JobStateEvent { jobState } ... on KubernetesEvent { kubernetesReason } }
  }
}"""
CHANGES = """
subscription ($id: ID!, $after: String) {
  job(id: $id, after: $after) { kind job { state revision reason { code message } } }
}"""
LOGS = """
subscription ($id: ID!, $source: String) {
  jobLogs(id: $id, source: $source) { lines { number text } end }
}"""
JOB = """
query ($id: ID!) {
  job(id: $id) {
    id name state outcome exitCode revision releasedAt logsArchivedAt rayJobName
    reason { code message evidence { text } }
    history { state enteredAt leftAt }
    progress { step total metrics { name value } }
    capsule { digest codeDigest transportSha256 }
    pods { name role pool gpus nodeName goneAt containers { name role } }
    logArchive { state lines sha256 }
    logSources { key state lines bytes sha256 download { url } }
  }
}"""


@dataclass
class Followed:
    """What three subscriptions told of a job, and the job as it is at its end."""

    id: str
    states: list[str] = field(default_factory=list)
    revisions: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    kubernetes: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    job: dict[str, Any] = field(default_factory=dict)
    pending: asyncio.Event = field(default_factory=asyncio.Event)
    running: asyncio.Event = field(default_factory=asyncio.Event)

    def changed(self, job: dict[str, Any]) -> bool:
        """Note a change; True if it was the last one."""
        self.revisions.append(job["revision"])
        if job["reason"] and job["reason"]["message"] not in self.reasons:
            self.reasons.append(job["reason"]["message"])
        if job["state"] in ("PENDING", "RUNNING"):
            (self.pending if job["state"] == "PENDING" else self.running).set()
        return job["state"] in END_STATES

    @property
    def log(self) -> str:
        return "\n".join(self.lines)

    def metric(self, name: str) -> float:
        found = {one["name"]: one["value"] for one in (self.job["progress"] or {"metrics": []})["metrics"]}
        return float(found[name])


def files(folder: Path) -> list[dict[str, Any]]:
    """The files of a folder as inline code."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return [{"path": path.relative_to(folder).as_posix(), "content": path.read_text()} for path in paths]


def pool(name: str, series: str, *, machines: int = 1, gpus: int = 1) -> dict[str, Any]:
    return {
        "name": name, "series": series, "machines": machines, "gpusPerMachine": gpus, "cpus": 1, "memory": "2Gi",
    }  # fmt: skip


async def refused(gateway: Gateway, spec: dict[str, Any], code: Path) -> list[dict[str, Any]]:
    """The user errors of a submission that is to be refused."""
    answer = await gateway.ask(SUBMIT, input={"spec": spec, "code": {"files": files(code)}})
    assert answer["submitJob"]["status"] == "REFUSED", answer
    errors: list[dict[str, Any]] = answer["submitJob"]["userErrors"]
    return errors


async def start(gateway: Gateway, spec: dict[str, Any], code: Path, **more: Any) -> tuple[Followed, asyncio.Task[None]]:
    """A submitted job, and the task that follows it to its end; `more` goes into the input of the submission."""
    cursor = (await gateway.ask(FEED))["feed"]["cursor"]
    given = {"spec": spec, "code": {"files": files(code)}, **more}
    answer = (await gateway.ask(SUBMIT, input=given))["submitJob"]
    assert answer["status"] == "CREATED", answer
    followed = Followed(answer["job"]["id"])
    return followed, asyncio.create_task(_follow(gateway, followed, cursor))


async def run(gateway: Gateway, spec: dict[str, Any], code: Path, **more: Any) -> Followed:
    """A job that was submitted and came to its end."""
    followed, following = await start(gateway, spec, code, **more)
    await following
    return followed


async def _follow(gateway: Gateway, followed: Followed, cursor: str) -> None:
    parts = (_events(gateway, followed, cursor), _changes(gateway, followed, cursor), _logs(gateway, followed))
    await within(JOB_S, asyncio.gather(*parts), f"the end of {followed.id}")
    followed.job = (await gateway.ask(JOB, id=followed.id))["job"]


async def _events(gateway: Gateway, followed: Followed, cursor: str) -> None:
    async with aclosing(gateway.follow(EVENTS, jobs=[followed.id], after=cursor)) as steps:
        async for step in steps:
            event = step["events"]["event"] or {}
            if "jobState" in event:
                followed.states.append(event["jobState"])
            if "kubernetesReason" in event:
                followed.kubernetes.append(event["kubernetesReason"])
            if followed.states and followed.states[-1] in END_STATES:
                return


async def _changes(gateway: Gateway, followed: Followed, cursor: str) -> None:
    async with aclosing(gateway.follow(CHANGES, id=followed.id, after=cursor)) as steps:
        async for step in steps:
            job = step["job"]["job"]
            if job and followed.changed(job):
                return


async def _logs(gateway: Gateway, followed: Followed) -> None:
    async with aclosing(gateway.follow(LOGS, id=followed.id)) as steps:
        async for step in steps:
            for line in step["jobLogs"]["lines"] or []:
                followed.lines.append(line["text"])
                followed.numbers.append(line["number"])
