import asyncio
from typing import Any

import pytest
from starlette.websockets import WebSocket

from starforge.api.transport.messages import CloseCode
from starforge.api.transport.peer import MAX_REASON_BYTES, Peer


class FakeSocket:
    """An ASGI server that takes frames while its gate is open."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def send(self, message: Any) -> None:
        await self.gate.wait()
        self.sent.append(message.get("text", message.get("code")))

    async def receive(self) -> Any:
        return {"type": "websocket.connect"}

    async def peer(self, send_timeout_s: float = 60) -> Peer:
        websocket = WebSocket({"type": "websocket", "headers": []}, self.receive, self.send)
        await websocket.accept()
        self.sent.clear()
        return Peer(websocket, send_timeout_s=send_timeout_s)


def test_nothing_is_sent_after_the_close_and_the_frame_on_its_way_comes_before() -> None:
    async def scenario() -> FakeSocket:
        fake = FakeSocket()
        peer = await fake.peer()
        fake.gate.clear()
        sending = [asyncio.create_task(peer.send(str(number))) for number in range(3)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(peer.close(CloseCode.BAD_MESSAGE, "bad"))
        await asyncio.sleep(0)
        assert not peer.closed.is_set()
        fake.gate.set()
        await asyncio.gather(*sending, closing)
        await peer.close(CloseCode.FORBIDDEN, "again")
        assert peer.closed.is_set()
        return fake

    assert asyncio.run(scenario()).sent == ["0", CloseCode.BAD_MESSAGE]


def test_a_claim_is_asked_at_the_last_moment() -> None:
    async def scenario() -> FakeSocket:
        fake = FakeSocket()
        peer = await fake.peer()
        fake.gate.clear()
        is_wanted = True
        first = asyncio.create_task(peer.send("first"))
        second = asyncio.create_task(peer.send("second", claim=lambda: is_wanted))
        await asyncio.sleep(0)
        is_wanted = False
        fake.gate.set()
        await asyncio.gather(first, second)
        return fake

    assert asyncio.run(scenario()).sent == ["first"]


def test_who_does_not_read_is_closed_even_if_the_close_frame_cannot_leave() -> None:
    async def scenario() -> None:
        fake = FakeSocket()
        peer = await fake.peer(send_timeout_s=0.01)
        fake.gate.clear()
        await peer.send("x")
        assert peer.closed.is_set()

    asyncio.run(scenario())


@pytest.mark.parametrize("reason", ["x" * 500, "ü" * 500])
def test_a_long_reason_is_cut_to_what_a_close_frame_holds(reason: str) -> None:
    async def scenario() -> str:
        fake = FakeSocket()
        reasons: list[str] = []

        async def send(message: Any) -> None:
            reasons.append(message.get("reason", ""))

        fake.send = send  # type: ignore[method-assign]
        await (await fake.peer()).close(CloseCode.BAD_MESSAGE, reason)
        return reasons[-1]

    cut = asyncio.run(scenario())
    assert reason.startswith(cut)
    assert MAX_REASON_BYTES - 2 < len(cut.encode()) <= MAX_REASON_BYTES
