"""Playgrounds with everything that the documents ask for."""

from typing import Any

Json = dict[str, Any]


def a_playground(**changes: Any) -> Json:
    given: Json = {
        "id": "play-1", "name": "chat", "project": "default", "fleet": "local", "state": "READY", "ended": False,
        "model": "org/tiny", "servedModelName": "org/tiny", "series": "h200", "gpus": 2, "reason": None,
        "endpoint": "https://forge.example.com/playgrounds/play-1/v1", "createdAt": "2026-03-01T09:00:00.000Z",
        "readyAt": "2026-03-01T09:10:00.000Z", "expiresAt": "2026-03-01T10:00:00.000Z", "lastUsedAt": None,
        "usage": {"requests": 7, "activeRequests": 0, "completionTokens": 90}, "createdBy": {"name": "ada"}, **changes,
    }  # fmt: skip
    return given


def playground_change(cursor: int, playground: Json | None, kind: str = "UPDATED") -> Json:
    """A step of `subscription playground`."""
    at = "2026-03-01T09:30:00.000Z"
    return {"playground": {"cursor": str(cursor), "kind": kind, "at": at, "playground": playground}}


def playground_page(*playgrounds: Json, after: str | None = None) -> Json:
    return {"nodes": list(playgrounds), "pageInfo": {"hasNextPage": after is not None, "endCursor": after}}
