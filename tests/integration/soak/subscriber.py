"""One subscriber: it comes back by itself with the cursor of what it got last, as a good client does, and keeps all."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from tests.integration.soak.documents import Asked
from tests.integration.soak.wires import Ended, Payload, Socket, Stream, Wire

BACK_AFTER_S = 0.25
BACK_AFTER_MAX_S = 2.0
AGAIN_CODES = ("SLOW_CONSUMER", "UNAVAILABLE")
"""Codes after which the same cursor is good. CURSOR_EXPIRED asks for a new beginning; any other is a defect here."""


@dataclass
class Story:
    """What one subscriber was told. `fresh` marks the first message after each resume."""

    steps: list[tuple[bool, dict[str, Any]]] = field(default_factory=list)
    first_cursor: str | None = None
    ends: Counter[str] = field(default_factory=Counter)
    resumes: int = 0


@dataclass(eq=False)
class Subscriber:
    number: int
    asked: Asked
    port: int
    over_sse: bool
    story: Story = field(default_factory=Story)
    connected: asyncio.Event = field(default_factory=asyncio.Event)
    is_done: bool = False
    cursor: str | None = None

    def __post_init__(self) -> None:
        self._reads = asyncio.Event()
        self._reads.set()
        self._pause = BACK_AFTER_S
        self._chance = random.Random(self.number)
        self.cursor = self.story.first_cursor = self.asked.after
        make = Stream if self.over_sse else Socket
        self.wire: Wire = make(self.port, self._reads.wait)
        self._connection: asyncio.Task[bool] | None = None
        self._in_snapshot = self.asked.has_snapshot and self.cursor is None

    @property
    def name(self) -> str:
        return f"{'sse' if self.over_sse else 'ws'} {self.number} {self.asked.name}"

    # --- what happens to it

    def cut(self) -> None:
        """Its connection is lost, without a word."""
        if self._connection is not None:
            self.wire.tear()
            self._connection.cancel()

    def freeze(self) -> None:
        self._reads.clear()

    def thaw(self) -> None:
        self._reads.set()

    # --- what it does

    async def follow(self) -> None:
        """Until its subscription completes, or this is cancelled."""
        while not self.is_done:
            self._connection = asyncio.create_task(self._once())
            try:
                await asyncio.wait({self._connection})
            finally:
                self._connection.cancel()
            self.connected.clear()
            if self._connection.cancelled():
                self.story.ends["cut by us"] += 1
            else:
                self.is_done = self._connection.result()
            if not self.is_done:
                await asyncio.sleep(self._chance.uniform(0, self._pause))
                self._pause = min(2 * self._pause, BACK_AFTER_MAX_S)

    async def _once(self) -> bool:
        """Whether the subscription is complete."""
        if self._in_snapshot:
            self.cursor = None
        variables = self.asked.resumed(self.cursor)
        is_fresh = True
        try:
            async with aclosing(self.wire.results(self.asked.query, variables)) as payloads:
                async for payload in payloads:
                    if "errors" in payload:
                        self._refused(payload)
                        return False
                    self._take(payload, is_fresh=is_fresh)
                    is_fresh = False
        except Ended as ended:
            self.story.ends[ended.why] += 1
            return False
        if not self.asked.completes(self.story.steps[-1][1] if self.story.steps else None):
            self.story.ends["completed too early"] += 1
            return False
        return True

    def _refused(self, payload: Payload) -> None:
        code = payload["errors"][0]["extensions"]["code"]
        self.story.ends[code] += 1
        if code == "CURSOR_EXPIRED":
            self.cursor, self._in_snapshot = None, self.asked.has_snapshot
        elif code not in AGAIN_CODES:
            raise AssertionError(f"{self.name} was refused: {payload}")

    def _take(self, payload: Payload, *, is_fresh: bool) -> None:
        step: dict[str, Any] = payload["data"][self.asked.root]
        self.story.resumes += is_fresh and bool(self.story.steps)
        self.story.steps.append((is_fresh, step))
        self.cursor = step["cursor"]
        self.story.first_cursor = self.story.first_cursor or self.cursor
        if step["kind"] != "SNAPSHOT":
            self._in_snapshot = False
        self._pause = BACK_AFTER_S
        self.connected.set()


async def until(seen: Callable[[], bool | Awaitable[bool]], what: str, *, patience_s: float = 120) -> None:
    """Return once it is so; nothing tells us when, so it is looked at again and again."""
    try:
        async with asyncio.timeout(patience_s):
            while True:
                found = seen()
                if found if isinstance(found, bool) else await found:
                    return
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise AssertionError(f"{what} is not so after {patience_s} s") from None
