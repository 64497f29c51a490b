"""Tells what the server of a playground says from what the API server says in its place."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from starforge.adapters.server_http import HttpAnswer
from starforge.domain.playground_door import Headers
from starforge.domain.redaction import redact

STATUS_MAX = 64 * 1024
"""Bytes of a Status object at most: what is longer is the server's own."""
_TEXT_MAX = 500
_NOT_BEHIND = "error trying to reach service"
_ADVICE = {
    401: "Its token is not good any more; give StarForge another one.",
    403: "Apply deploy/rbac.yaml, so that its account may use pods/proxy.",
    429: "Try again in a moment.",
}


@dataclass(frozen=True)
class Peeked:
    """A ServerAnswer of which `read` was read already. `said` is the API server's Status, if it is one."""

    answer: HttpAnswer
    rest: AsyncIterator[bytes]
    read: bytes = b""
    said: dict[str, Any] | None = None

    @property
    def status(self) -> int:
        return self.answer.status

    @property
    def headers(self) -> Headers:
        return self.answer.headers

    @property
    def is_unauthorized(self) -> bool:
        return self.said is not None and self.status == 401

    @property
    def problem(self) -> str | None:
        """Why the server was not asked, as a sentence; None if this is its own answer."""
        return None if self.said is None else _sentence(self.status, self.said)

    async def pieces(self) -> AsyncIterator[bytes]:
        if self.read:
            yield self.read
        async for piece in self.rest:
            yield piece


async def peeked(answer: HttpAnswer) -> Peeked:
    """The answer, looked into if it may be the API server's."""
    rest = answer.pieces()
    if answer.status < 400 or not dict(answer.headers).get("content-type", "").startswith("application/json"):
        return Peeked(answer, rest)
    read = bytearray()
    async for piece in rest:
        read += piece
        if len(read) > STATUS_MAX:
            return Peeked(answer, rest, bytes(read))
    return Peeked(answer, rest, bytes(read), _status(bytes(read)))


def _status(text: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    is_one = isinstance(found, dict) and found.get("kind") == "Status" and found.get("apiVersion") == "v1"
    return found if is_one else None


def _sentence(code: int, said: dict[str, Any]) -> str:
    message = redact(str(said.get("message") or said.get("reason") or ""))[:_TEXT_MAX].rstrip(".")
    if _NOT_BEHIND in message:
        why = message.partition(_NOT_BEHIND)[2].strip(": '")
        return f"The server of the playground does not answer in its Pod ({why}): it may have just ended, or hang."
    if code == 404:
        return f"The Pod of the playground is not in the cluster any more ({message})."
    return " ".join(
        filter(None, (f"Kubernetes did not let StarForge through to the playground: {message}.", _ADVICE.get(code)))
    )
