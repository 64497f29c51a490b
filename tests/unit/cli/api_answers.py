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
