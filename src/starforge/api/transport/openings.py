"""What subscribers are told before they join a source, made once for those who begin at the same place."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Hashable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from starforge.api.transport.encoding import encode_response
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.source import Cut, Joint, Source, Step

OPENING_BYTES = 256 * 1024
"""An opening of more than this is each subscriber's own, so that nobody's memory holds it."""
OPENINGS_KEPT = 8

Run = Callable[[Source], AsyncGenerator[dict[str, Any], None]]
"""Executes a subscription, live or its opening."""


@dataclass(frozen=True)
class Opening:
    """`joint` is None if the source was over with it."""

    results: tuple[tuple[Step, bytes], ...]
    joint: Joint | None


Opened = Opening | RequestRefused | None
"""None if it is too much to be kept."""


class Openings:
    """Those of one group, as long as somebody could begin with them: until something newer was told."""

    def __init__(self) -> None:
        self._by_key: dict[Hashable, asyncio.Task[Opened]] = {}

    async def opening(self, key: Hashable, run: Run, resume_at: int | None, *, told: int) -> Opening | None:
        """The opening of `key` that knows all up to `told`; None if it is too much. Raises RequestRefused."""
        known = self._by_key.get(key)
        if known is None or _is_stale(known, told):
            self._by_key.pop(key, None)
            known = self._by_key[key] = asyncio.create_task(_open(run, resume_at))
            while len(self._by_key) > OPENINGS_KEPT:
                self._by_key.pop(next(iter(self._by_key)))
        opened = await asyncio.shield(known)
        if isinstance(opened, RequestRefused):
            raise opened.again()
        return opened

    def drop(self, told: int) -> None:
        """Forget those that nobody can begin with any more."""
        for key, opening in list(self._by_key.items()):
            if _is_stale(opening, told):
                del self._by_key[key]

    def cancel(self) -> None:
        for opening in self._by_key.values():
            opening.cancel()


def _is_stale(opening: asyncio.Task[Opened], told: int) -> bool:
    if not opening.done():
        return False
    opened = None if opening.cancelled() else opening.result()
    joint = opened.joint if isinstance(opened, Opening) else None
    return joint is None or joint.position < told


async def _open(run: Run, resume_at: int | None) -> Opened:
    source, results, size = Source(resume_at=resume_at), list[tuple[Step, bytes]](), 0
    try:
        async with aclosing(run(source)) as responses:
            async for response in responses:
                refuse_cut(response)
                payload = encode_response(response)
                results.append((source.told_step(), payload))
                size += len(payload)
                if size > OPENING_BYTES:
                    return None
    except RequestRefused as refused:
        return refused
    except Exception as error:  # noqa: BLE001  because_of logs it
        return RequestRefused.because_of(error)
    return Opening(tuple(results), source.joint)


def refuse_cut(response: dict[str, Any]) -> None:
    """An opening is whole or none: what it leaves out would never come. Raises RequestRefused."""
    if isinstance(response, Cut):
        raise RequestRefused.with_errors(response["errors"])
