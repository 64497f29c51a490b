"""Follows a job to its end, with the lines of its log."""

import asyncio
from collections.abc import Sequence
from typing import Any

from starforge.cli.answers import Json
from starforge.cli.documents import FOLLOW_JOB, FOLLOW_LOGS
from starforge.cli.gateway import Gateway
from starforge.cli.live import Live
from starforge.cli.outage import Patience
from starforge.cli.screens import Screen
from starforge.domain.errors import NotFound, StarForgeError


async def follow_job(
    gateway: Gateway, job_id: str, screen: Screen, *, logs: bool = True, patience: Patience | None = None
) -> Json:
    """The job as it ended. Everything goes to the screen on the way."""
    patience = patience or Patience()
    reading = asyncio.create_task(_read_log(Live(gateway, patience=patience), job_id, screen)) if logs else None
    try:
        job = await _watch(Live(gateway, screen.note, patience), job_id, screen)
        if reading:
            await reading
        return job
    finally:
        if reading:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def follow_log(live: Live, variables: Json, screen: Screen) -> None:
    """The lines of a log until it is closed, and a note for each gap."""
    noted: set[int] = set()
    async for chunk in live.follow(FOLLOW_LOGS, variables, is_last=lambda chunk: bool(chunk["end"])):
        if chunk["lines"]:
            screen.lines(chunk["lines"])
        for gap in new_gaps(chunk["source"], noted):
            screen.note(gap)


def new_gaps(source: Json | None, noted: set[int]) -> Sequence[str]:
    """A sentence for each gap of a log that is not in `noted`, and adds it there."""
    gaps = [gap for gap in (source["gaps"] if source else []) if gap["afterLine"] not in noted]
    noted.update(gap["afterLine"] for gap in gaps)
    return [_gap(gap) for gap in gaps]


def _gap(gap: Json) -> str:
    count = f"{gap['lines']} lines are" if gap["lines"] else "Lines are"
    return f"{count} missing after line {gap['afterLine']}: {gap['message']}"


async def _watch(live: Live, job_id: str, screen: Screen) -> Json:
    job: Json | None = None
    async for change in live.follow(FOLLOW_JOB, {"id": job_id}, is_last=_has_ended):
        if change["job"]:
            job = change["job"]
            screen.job(change)
        elif change["kind"] == "REMOVED":
            break
    if job is None or not job["ended"]:
        raise NotFound(f"The job {job_id} was removed.")
    return job


async def _read_log(live: Live, job_id: str, screen: Screen) -> None:
    """The job goes on being followed when its log can't be."""
    try:
        await follow_log(live, {"id": job_id}, screen)
    except StarForgeError as error:
        screen.note(f"Its log can't be followed any more: {error.message}")


def _has_ended(change: dict[str, Any]) -> bool:
    return bool(change["job"] and change["job"]["ended"])
