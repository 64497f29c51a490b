"""Answers of the API with everything that the documents ask for."""

from typing import Any

Json = dict[str, Any]


def a_job(**changes: Any) -> Json:
    """A job with everything that the documents ask for."""
    counts = dict.fromkeys(("wanted", "pending", "running", "ready", "succeeded", "failed", "terminating"), 0)
    given: Json = {
        "id": "job-1", "name": "digits", "project": "default", "fleet": "local", "attempt": 1,
        "state": "RUNNING", "outcome": None, "exitCode": None, "gpus": 1, "reason": None, "progress": None,
        "createdAt": "2026-03-01T09:30:00.000Z", "startedAt": None, "finishedAt": None, "endedAt": None,
        "launchedAt": None, "logsArchivedAt": None, "releasedAt": None, "rayJobName": None,
        "podCounts": counts, "observation": {"freshness": "LIVE", "staleSince": None, "problem": None},
        "clocks": [], "pools": [], "pods": [], "createdBy": {"name": "ada"},
        "spec": {"description": None, "command": ["python3", "train.py"], "image": None},
        "cancellation": None, "teardown": None, "logArchive": None, "capsule": None, "logSources": [],
        "events": {"nodes": []}, "logs": None, **changes,
    }  # fmt: skip
    given.setdefault("ended", given["state"] in {"SUCCEEDED", "FAILED", "CANCELED"})
    return given


def change(cursor: int, job: Json | None) -> Json:
    """A step of `subscription job`; a bookmark if there is no job."""
    kind = "UPDATED" if job else "BOOKMARK"
    return {"job": {"cursor": str(cursor), "kind": kind, "at": "2026-03-01T09:30:00.000Z", "aspects": [], "job": job}}


AT = "2026-03-01T09:30:00.000Z"


def a_cause(gpus: int = 4, **changes: Any) -> Json:
    message = "node-b is cordoned."
    return {"cause": "CORDONED", "gpus": gpus, "nodes": 1, "message": message, "since": None, **changes}


def a_holder(**changes: Any) -> Json:
    return {
        "kind": "JOB", "name": "digits", "workload": {"__typename": "Job", "id": "job-1"}, "pool": "train", "gpus": 3,
        "nodes": ["node-a"], "since": AT, "until": None, "releasing": False, **changes,
    }  # fmt: skip


def a_node(name: str, used: int = 0, blocked: int = 0, **changes: Any) -> Json:
    return {
        "id": f"node.kuberay.{name}", "name": name, "series": "h200", "total": 4, "used": used, "blocked": blocked,
        "free": 4 - used - blocked, "ready": True, "cordoned": bool(blocked),
        "causes": [a_cause(blocked)] if blocked else [], "holders": [a_holder(gpus=used)] if used else [], **changes,
    }  # fmt: skip


def a_fleet(*nodes: Json, **changes: Any) -> Json:
    """Capacity of a fleet with one series of these nodes."""
    counts = {name: sum(node[name] for node in nodes) for name in ("total", "used", "free", "blocked")}
    series = {
        "name": "h200", "labelled": True, "logicalGpus": False, **counts, "allocatable": counts["total"],
        "largestFree": max((node["free"] for node in nodes), default=0), "nodes": list(nodes),
        "causes": [cause for node in nodes for cause in node["causes"]],
    }  # fmt: skip
    observation = {"freshness": "LIVE", "observedAt": AT, "staleSince": None, "problem": None}
    return {
        "name": "kuberay",
        "kind": "KUBERAY",
        "observation": observation,
        "series": [series],
        "waiting": [],
        **changes,
    }


def a_demand(**changes: Any) -> Json:
    return {
        "workload": {"__typename": "Job", "id": "job-2", "name": "waits"}, "pool": "train", "series": "h200",
        "machines": 2, "gpusPerMachine": 4, "since": AT, "message": "2 machines find no node.", **changes,
    }  # fmt: skip


def a_line(number: int, text: str | None = None) -> Json:
    return {"number": number, "at": None, "text": f"line {number}" if text is None else text, "marks": []}


def a_source(lines: int = 0, **changes: Any) -> Json:
    return {"key": "driver", "state": "OPEN", "lines": lines, "gaps": [], **changes}


def chunk(cursor: int, lines: list[Json] | None, *, end: bool = False, source: Json | None = None) -> Json:
    """A step of `subscription jobLogs`."""
    kind, at = ("BOOKMARK" if lines is None else "UPDATED"), "2026-03-01T09:30:00.000Z"
    source = source or a_source()
    return {"jobLogs": {"cursor": str(cursor), "kind": kind, "at": at, "end": end, "source": source, "lines": lines}}


def page(lines: list[Json], *, total: int, after: str | None = None, source: Json | None = None) -> Json:
    """A page of `Job.logs`."""
    return {
        "source": source or a_source(total),
        "nodes": lines,
        "pageInfo": {"hasNextPage": after is not None, "endCursor": after},
        "totalCount": total,
    }
