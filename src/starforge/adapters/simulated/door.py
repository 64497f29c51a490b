"""The server of a simulated playground: it knows one answer, and gives it word by word as vLLM would."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from starforge.domain.errors import FleetUnavailable
from starforge.domain.playground import Playground
from starforge.domain.playground_door import Door, Headers, ServerAnswer, ServerRequest

WORD_S = 0.05
WORDS = ("This", "is", "a", "simulated", "playground:", "it", "has", "no", "model", "to", "speak", "of.")
_CHAT, _TEXT, _MODELS = "chat/completions", "completions", "models"
_PROMPT_TOKENS = 1
_CREATED = 0
Event = dict[str, Any]


@dataclass(frozen=True)
class SimulatedAnswer:
    """A ServerAnswer; each of `parts` comes `pause_s` seconds of real time after the one before."""

    status: int
    headers: Headers
    parts: tuple[bytes, ...]
    pause_s: float = 0.0

    async def pieces(self) -> AsyncIterator[bytes]:
        for part in self.parts:
            yield part
            await asyncio.sleep(self.pause_s)


@asynccontextmanager
async def simulated_door(runs: Callable[[Playground], bool], *, word_s: float = WORD_S) -> AsyncIterator[Door]:
    """The Door of a fleet that says which playgrounds run."""
    yield SimulatedDoor(runs, word_s)


class SimulatedDoor:
    def __init__(self, runs: Callable[[Playground], bool], word_s: float) -> None:
        self._runs, self._word_s = runs, word_s

    @asynccontextmanager
    async def ask(self, playground: Playground, request: ServerRequest) -> AsyncIterator[ServerAnswer]:
        if not await asyncio.to_thread(self._runs, playground):
            raise FleetUnavailable(f"The server of {playground.id} does not run any more.")
        yield self._answer(playground.spec.served_model_name, request)

    def _answer(self, model: str, request: ServerRequest) -> SimulatedAnswer:
        if (request.method, request.path) == ("GET", _MODELS):
            card = {"id": model, "object": "model", "created": _CREATED, "owned_by": "starforge"}
            return _whole({"object": "list", "data": [card]})
        if request.method != "POST" or request.path not in (_CHAT, _TEXT):
            return _refusal(404, f"A simulated playground has no {request.method} /v1/{request.path}.")
        try:
            asked = json.loads(request.body)
        except ValueError:
            asked = None
        if not isinstance(asked, dict):
            return _refusal(400, "The body is not a JSON object.")
        if asked.get("stream") is True:
            parts = tuple(
                b"data: %b\n\n" % part for part in (*map(_json, _events(model, request.path, asked)), b"[DONE]")
            )
            return SimulatedAnswer(200, [("content-type", "text/event-stream; charset=utf-8")], parts, self._word_s)
        return _whole(_completion(model, request.path))


def _completion(model: str, path: str) -> Event:
    text = " ".join(WORDS)
    said = {"message": {"role": "assistant", "content": text}} if path == _CHAT else {"text": text}
    choice = {"index": 0, **said, "finish_reason": "stop"}
    kind = "chat.completion" if path == _CHAT else "text_completion"
    return {**_head(model, kind), "choices": [choice], "usage": _usage()}


def _events(model: str, path: str, asked: Event) -> Iterator[Event]:
    head = _head(model, "chat.completion.chunk" if path == _CHAT else "text_completion")
    for number, word in enumerate(WORDS):
        text, last = word if number == 0 else f" {word}", number == len(WORDS) - 1
        said = {"delta": {"role": "assistant", "content": text}} if path == _CHAT else {"text": text}
        yield {**head, "choices": [{"index": 0, **said, "finish_reason": "stop" if last else None}]}
    options = asked.get("stream_options")
    if isinstance(options, dict) and options.get("include_usage"):
        yield {**head, "choices": [], "usage": _usage()}


def _head(model: str, kind: str) -> Event:
    return {"id": "chatcmpl-simulated", "object": kind, "created": _CREATED, "model": model}


def _usage() -> Event:
    total = _PROMPT_TOKENS + len(WORDS)
    return {"prompt_tokens": _PROMPT_TOKENS, "completion_tokens": len(WORDS), "total_tokens": total}


def _refusal(status: int, message: str) -> SimulatedAnswer:
    kind = "NotFoundError" if status == 404 else "BadRequestError"
    return _whole({"error": {"message": message, "type": kind, "param": None, "code": status}}, status)


def _whole(body: Event, status: int = 200) -> SimulatedAnswer:
    return SimulatedAnswer(status, [("content-type", "application/json")], (_json(body),))


def _json(value: Event) -> bytes:
    return json.dumps(value).encode()
