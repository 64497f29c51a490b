"""A client of the public schema: queries over HTTP, subscriptions over graphql-transport-ws."""

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator
from typing import Any

import httpx
from websockets.asyncio.client import connect


class Gateway:
    """What the loop knows of StarForge: its address and its token."""

    def __init__(self, url: str, token: str) -> None:
        self._url, self._token = url, token
        self._http = httpx.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60)
        self._ids = itertools.count(1)

    async def ask(self, document: str, **variables: Any) -> dict[str, Any]:
        """The `data` of an answer; RuntimeError with the errors of one that has any."""
        answer = (await self._http.post(self._url, json={"query": document, "variables": variables})).json()
        if answer.get("errors"):
            raise RuntimeError(json.dumps(answer["errors"])[:2000])
        data: dict[str, Any] = answer["data"]
        return data

    async def follow(self, document: str, **variables: Any) -> AsyncGenerator[dict[str, Any], None]:
        """The `data` of each step of a subscription."""
        url = self._url.replace("http", "ws", 1)
        async with connect(url, subprotocols=["graphql-transport-ws"], max_size=None) as socket:  # type: ignore[list-item]
            init = {"type": "connection_init", "payload": {"authorization": f"Bearer {self._token}"}}
            await socket.send(json.dumps(init))
            acknowledged = json.loads(await socket.recv())
            assert acknowledged["type"] == "connection_ack", acknowledged
            payload = {"query": document, "variables": variables}
            await socket.send(json.dumps({"id": "1", "type": "subscribe", "payload": payload}))
            async for text in socket:
                message = json.loads(text)
                if message["type"] == "next":
                    if message["payload"].get("errors"):
                        raise RuntimeError(json.dumps(message["payload"]["errors"])[:2000])
                    yield message["payload"]["data"]
                elif message["type"] == "ping":
                    await socket.send(json.dumps({"type": "pong"}))
                elif message["type"] == "error":
                    raise RuntimeError(json.dumps(message["payload"])[:2000])
                elif message["type"] == "complete":
                    return

    async def close(self) -> None:
        await self._http.aclose()


async def within(seconds: float, awaited: Any, what: str) -> Any:
    """The result of `awaited`; RuntimeError that says what did not come in time."""
    try:
        async with asyncio.timeout(seconds):
            return await awaited
    except TimeoutError:
        raise RuntimeError(f"{what} did not come within {seconds:.0f} s") from None
