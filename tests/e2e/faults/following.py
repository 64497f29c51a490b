"""Follows a job through every cut, as a dashboard would, and notes what it was told and when."""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, TypeVar

import httpx
from websockets.exceptions import WebSocketException

from loop.gateway import Gateway
from tests.e2e.faults.judging import END_STATES, Step

CUT = (httpx.HTTPError, WebSocketException, OSError, RuntimeError, ValueError, AssertionError)
"""A gateway that was killed, or has no database right now: the question is asked again."""
AGAIN_S = 0.3
ORDER = ("SUBMITTED", "PACKAGING", "LAUNCHING", "PENDING", "RUNNING", "FINISHING", "SUCCEEDED")
Answer = TypeVar("Answer")

CHANGES = """
subscription ($id: ID!, $after: String) {
  job(id: $id, after: $after) {
    cursor job { state reason { code message } observation { problem { code } } teardown { reason { code } } }
  }
}"""
LINES = """
subscription ($id: ID!, $after: String) {
  jobLogs(id: $id, after: $after) { cursor lines { number text } end }
}"""


async def patiently(seconds: float, what: str, ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """The answer, asked for again after each cut; RuntimeError if there was none within `seconds`."""
    until = time.monotonic() + seconds
    while True:
        try:
            return await ask()
        except CUT as cut:
            if time.monotonic() > until:
                raise RuntimeError(f"{what}: no answer within {seconds:.0f} s: {cut}") from cut
        await asyncio.sleep(AGAIN_S)


@dataclass
class Story:
    """What two subscriptions told of a job so far."""

    id: str
    steps: list[Step] = field(default_factory=list)
    lines: list[tuple[int, str]] = field(default_factory=list)
    cuts: int = 0
    log_ended: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def state(self) -> str:
        return self.steps[-1].state if self.steps else "SUBMITTED"

    @property
    def has_ended(self) -> bool:
        return self.state in END_STATES

    async def note(self, job: dict[str, Any]) -> None:
        reasons = (job["reason"], job["observation"]["problem"], (job["teardown"] or {}).get("reason"))
        codes = frozenset(reason["code"] for reason in reasons if reason)
        self.steps.append(Step(time.time(), job["state"], codes))
        async with self._changed:
            self._changed.notify_all()

    async def until(self, is_so: Callable[["Story"], bool]) -> None:
        """Return once it is so, looked at after each change."""
        async with self._changed:
            await self._changed.wait_for(lambda: is_so(self))

    async def reached(self, state: str) -> None:
        """Return once the job is, or was, in a state or beyond it."""
        await self.until(lambda story: story.has_ended or ORDER.index(story.state) >= ORDER.index(state))

    async def told(self, codes: frozenset[str], since: float) -> None:
        """Return once the job told one of the codes, or has ended without."""
        await self.until(lambda story: story.has_ended or story.has_told(codes, since))

    def has_told(self, codes: frozenset[str], since: float) -> bool:
        return any(step.at >= since and not codes.isdisjoint(step.codes) for step in self.steps)


async def follow(gateway: Gateway, story: Story) -> None:
    """Follow to the end of the job and of its log."""
    await asyncio.gather(_changes(gateway, story), _lines(gateway, story))


async def _changes(gateway: Gateway, story: Story) -> None:
    async def take(step: dict[str, Any]) -> tuple[str, bool]:
        if step["job"]["job"]:
            await story.note(step["job"]["job"])
        return step["job"]["cursor"], story.has_ended

    await _resumed(gateway, story, CHANGES, take)


async def _lines(gateway: Gateway, story: Story) -> None:
    async def take(step: dict[str, Any]) -> tuple[str, bool]:
        chunk = step["jobLogs"]
        story.lines += [(line["number"], line["text"]) for line in chunk["lines"] or []]
        return chunk["cursor"], chunk["end"]

    await _resumed(gateway, story, LINES, take)
    story.log_ended.set()


async def _resumed(
    gateway: Gateway, story: Story, document: str, take: Callable[[dict[str, Any]], Awaitable[tuple[str, bool]]]
) -> None:
    """Take each step, resuming behind the last one after a cut, until one is the last of all."""
    cursor: str | None = None
    while True:
        try:
            async with aclosing(_steps(gateway, document, story.id, cursor)) as steps:
                async for step in steps:
                    cursor, last = await take(step)
                    if last:
                        return
        except CUT:
            story.cuts += 1
        await asyncio.sleep(AGAIN_S)


def _steps(gateway: Gateway, document: str, job: str, cursor: str | None) -> AsyncGenerator[dict[str, Any], None]:
    return gateway.follow(document, id=job, after=cursor)
