"""A conversation with a playground, by the OpenAI API of the gateway."""

import json
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from starforge.cli.answers import Json
from starforge.cli.gateway import PATH, Gateway
from starforge.domain.errors import (
    Defect,
    Forbidden,
    NotFound,
    Outside,
    Problem,
    StarForgeError,
    Unauthenticated,
    UserMistake,
)

TIMEOUT = httpx.Timeout(40, connect=10, read=660)
"""Seconds; the gateway itself gives up when nothing came for 600, and writes something each 10 from then on."""
_DONE = "[DONE]"
_KINDS: dict[int, type[StarForgeError]] = {401: Unauthenticated, 403: Forbidden, 404: NotFound}


@dataclass
class Conversation:
    """What was said so far; `options` are further members of each request."""

    gateway: Gateway
    playground: str
    model: str
    options: Json = field(default_factory=dict)
    messages: list[Json] = field(default_factory=list)

    def ask(self, text: str) -> Generator[str, None, None]:
        """The answer in pieces. However it ends, what came of it is remembered, and the question if anything did."""
        said = {"role": "user", "content": text}
        pieces = list[str]()
        try:
            for piece in self._stream([*self.messages, said]):
                pieces.append(piece)
                yield piece
        finally:
            if pieces:
                self.messages += [said, {"role": "assistant", "content": "".join(pieces)}]

    def _stream(self, messages: list[Json]) -> Iterator[str]:
        root = self.gateway.url.removesuffix(PATH)
        headers = {"authorization": self.gateway.authorization} if self.gateway.authorization else {}
        body = {**self.options, "model": self.model, "messages": messages, "stream": True}
        url = f"{root}/playgrounds/{self.playground}/v1/chat/completions"
        try:
            with (
                httpx.Client(timeout=TIMEOUT, trust_env=not self.gateway.is_local) as http,
                http.stream("POST", url, json=body, headers=headers) as response,
            ):
                if not response.is_success:
                    response.read()
                    raise _refusal(response)
                yield from _deltas(response.iter_lines())
        except httpx.HTTPError as error:
            raise self.gateway.away(error) from error


def _deltas(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if not line.startswith("data:"):
            continue  # comments that keep a quiet stream alive, and the ends of events
        text = line.removeprefix("data:").strip()
        if text == _DONE:
            return
        event = _object(text)
        if "error" in event:
            raise Outside(f"The answer broke off: {_message(event['error'])}")
        for choice in event.get("choices") or ():
            piece = (choice.get("delta") or {}).get("content")
            if piece:
                yield str(piece)
    raise Outside("The answer broke off: the connection ended before it was complete.")


def _object(text: str) -> Json:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Defect("The playground sent something that is not JSON.")
    return found


def _refusal(response: httpx.Response) -> StarForgeError:
    try:
        body: Any = response.json()
    except ValueError:
        body = None
    status = response.status_code
    told = (
        _message(body["error"]) if isinstance(body, dict) and "error" in body else f"It answered with status {status}."
    )
    if status in (400, 409, 413, 422):
        return UserMistake([Problem("INVALID", (), told)])
    return _KINDS.get(status, Outside)(told)


def _message(error: Any) -> str:
    return str(error.get("message") or error) if isinstance(error, dict) else str(error)
