"""Rows of the feed as bytes on Redis: one message per commit, compact and versioned."""

import json
from collections.abc import Sequence
from datetime import datetime
from functools import cache, partial
from typing import Any
from urllib.parse import urlsplit

from pydantic import TypeAdapter

from starforge.domain.changes import Aspect
from starforge.domain.job import Job
from starforge.domain.names import JobId
from starforge.domain.queries import FeedKind, FeedRow

_VERSION = 2
_JOB = TypeAdapter(Job)


class Unreadable(ValueError):
    """A message that is none of ours, or of another version."""


def channel(url: str, prefix: str) -> str:
    """The channel of an installation; the URL's database number is in it, as pub/sub goes across databases."""
    return f"{prefix}:{urlsplit(url).path.strip('/') or '0'}:feed"


def encode(rows: Sequence[FeedRow]) -> bytes:
    """`{"v":2,"rows":[[position, at, kind, subject, job, project, revision, aspects, now], …]}`

    `now` is the job as text, so that whoever needs no job reads none; null for a row that has none.
    """
    listed = [_listed(row) for row in rows]
    return json.dumps({"v": _VERSION, "rows": listed}, separators=(",", ":"), ensure_ascii=False).encode()


def _listed(row: FeedRow) -> list[object]:
    head = [row.position, row.at.isoformat(), row.kind, row.subject, row.job, row.project, row.revision]
    return [*head, sorted(row.aspects), _JOB.dump_json(row.now()).decode() if row.now else None]


def decode(message: bytes) -> tuple[FeedRow, ...]:
    """The rows of a message, in order; Unreadable if they can't be had."""
    try:
        body = json.loads(message)
        if body["v"] != _VERSION:
            raise Unreadable(f"version {body['v']}")
        return tuple(_row(listed) for listed in body["rows"])
    except (ValueError, TypeError, KeyError) as error:
        raise Unreadable(str(error)) from error


def _row(listed: Sequence[Any]) -> FeedRow:
    position, at, kind, subject, job, project, revision, aspects, now = listed
    return FeedRow(
        position=position,
        at=datetime.fromisoformat(at),
        kind=FeedKind(kind),
        subject=subject,
        job=None if job is None else JobId(job),
        project=project,
        revision=revision,
        aspects=frozenset(Aspect(aspect) for aspect in aspects),
        now=None if now is None else cache(partial(_JOB.validate_json, now)),
    )


__all__ = ["Unreadable", "channel", "decode", "encode"]
