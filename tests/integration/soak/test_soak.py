"""The soak: subscribers on jobs of the simulated fleet while everything beneath them fails in turn.

SOAK_SUBSCRIBERS and SOAK_ROUNDS scale it. Run it with `-s` to see the numbers that were checked.
"""

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from starforge.adapters.wiring import Parts
from starforge.api.cursors import read_feed_cursor
from tests.integration.gateway import SUBMIT, a_submission
from tests.integration.soak.checks import Checks, Tally
from tests.integration.soak.crowd import Crowd, crowd
from tests.integration.soak.documents import CANCEL, HEAD, JOB, JOBS, JOBS_NOW, LOGS_STATE, Asked
from tests.integration.soak.outages import OUTAGES, Scene
from tests.integration.soak.site import Site, site
from tests.integration.soak.subscriber import Subscriber, until

SUBSCRIBERS = int(os.environ.get("SOAK_SUBSCRIBERS", "200"))
ROUNDS = int(os.environ.get("SOAK_ROUNDS", "1"))
LONG_JOBS = 8
"""Those that are followed one by one; they end with the test."""
LATE_JOBS = 3
"""Those that are submitted during each outage, and end by themselves."""
ENDINGS = ("SUCCEED", "FAIL", "FOREVER")


async def submit(site: Site, name: str, *, outcome: str, seconds: float) -> str:
    """Sent again until it is taken, with the same key."""
    given = a_submission(name=name, outcome=outcome, seconds=seconds, key=f"soak-{name}")
    payload = (await site.answer(SUBMIT, input=given))["submitJob"]
    assert payload["userErrors"] == []
    return str(payload["job"]["id"])


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


async def position(site: Site) -> int:
    return read_feed_cursor((await site.answer(HEAD))["feed"]["cursor"])


async def fail_in_turn(scene: Scene) -> int:
    """All outages with new jobs during each; how many jobs."""
    late = 0
    for turn in range(ROUNDS):
        for outage in OUTAGES:
            began = time.monotonic()
            names = [f"late-{turn}-{outage.__name__.replace('_', '-')}-{number}" for number in range(LATE_JOBS)]
            submitted = [
                asyncio.create_task(submit(scene.site, name, outcome=ENDINGS[index % 3], seconds=60 + 120 * index))
                for index, name in enumerate(names)
            ]
            await outage(scene)
            await asyncio.gather(*submitted)
            await scene.crowd.connected()
            await scene.crowd.told(2 * len(scene.crowd.members))
            late += LATE_JOBS
            _say(f"  {outage.__name__}: {time.monotonic() - began:.1f} s, {scene.crowd.resumes} resumes so far")
    return late


async def end_all_jobs(site: Site, count: int) -> None:
    """Cancel what runs; return once every job has ended and its logs are whole. No job was submitted twice."""
    jobs = (await site.answer(JOBS_NOW))["jobs"]["nodes"]
    assert len(jobs) == count
    for job in (await site.answer(JOBS_NOW, filter={"active": True}))["jobs"]["nodes"]:
        await site.answer(CANCEL, id=job["id"])

    async def are_over() -> bool:
        return not (await site.answer(JOBS_NOW, filter={"active": True}))["jobs"]["nodes"]

    await until(are_over, "Every job has ended")
    for job in jobs:
        sources = (await site.answer(LOGS_STATE, id=job["id"]))["job"]["logSources"]
        assert all(source["state"] != "OPEN" for source in sources), sources


async def quiet(site: Site, followers: Crowd) -> None:
    """Return once every subscriber has been told everything."""

    async def are_told() -> bool:
        followers.raise_failures()
        head = await position(site)
        logs = [one for one in followers.members if one.asked.completes({"end": True})]
        others = [one for one in followers.members if one not in logs]
        behind = [one for one in others if one.cursor is None or read_feed_cursor(one.cursor) < head]
        return not behind and all(one.is_done for one in logs)

    await until(are_told, "Everybody was told everything")


async def check(followers: Crowd, checks: Checks) -> None:
    for one in followers.members:
        await checks.check(one)


async def begin_again(scene: Scene, head: str) -> Checks:
    """Those who come with a cursor that is no longer kept are told so, query again, and end with the same."""
    ports = scene.parts.ports
    await asyncio.to_thread(ports.store.prune_feed, before=ports.now())
    asked = [Asked("jobs", JOBS, {"filter": None}, after=head), Asked("job", JOB, {"id": scene.noisy}, after=head)]
    late = Crowd([Subscriber(n, asked[n % 2], scene.site.gateway.port, over_sse=n < 2) for n in range(4)])
    async with late.following():
        await late.connected()
        await quiet(scene.site, late)
    assert late.ends["CURSOR_EXPIRED"] == len(late.members)
    checks = Checks(scene.site, head)
    await check(late, checks)
    return checks


def report(scene: Scene, tally: Tally, seconds: float) -> None:
    """The numbers that were checked."""
    followers = scene.crowd
    _say(
        f"{len(followers.members)} subscribers: {followers.deliveries} deliveries, {followers.resumes} resumes, "
        f"{scene.gaps:.0f} gaps repaired, {scene.dropped:.0f} closed as slow, drained in {scene.drained_s:.1f} s\n"
        f"{tally.events} events, {tally.lines} lines, {tally.states} states ({tally.again} told again after a resume, "
        f"{tally.removed} left a filter)\n"
        f"doubled {tally.doubled}, lost {tally.lost}, wrong {len(tally.wrong)}, in {seconds:.0f} s; "
        f"ended by {dict(followers.ends)}"
    )


async def follow_to_the_end(scene: Scene, jobs: int) -> None:
    """The soak itself; `jobs` are there before."""
    async with scene.crowd.following():
        await scene.crowd.connected()
        late = await fail_in_turn(scene)
        await end_all_jobs(scene.site, jobs + late)
        await quiet(scene.site, scene.crowd)
        await scene.count()
        scene.crowd.raise_failures()


async def soak(site: Site, parts: Parts) -> None:
    began = time.monotonic()
    head = (await site.answer(HEAD))["feed"]["cursor"]
    jobs: Sequence[str] = [await submit(site, f"long-{n}", outcome="FOREVER", seconds=150) for n in range(LONG_JOBS)]
    noisy = await submit(site, "noisy", outcome="FOREVER", seconds=600)
    scene = Scene(site, crowd(site.gateway.port, jobs, head, SUBSCRIBERS), parts, noisy)
    await follow_to_the_end(scene, len(jobs) + 1)
    checks, ends = Checks(site, head), scene.crowd.ends
    await check(scene.crowd, checks)
    report(scene, checks.tally, time.monotonic() - began)
    assert not checks.tally.wrong, "\n".join(checks.tally.wrong)
    assert (checks.tally.doubled, checks.tally.lost) == (0, 0)
    assert ends["1012"]
    assert ends["1013"] or ends["SLOW_CONSUMER"]  # which of the two limits is met first depends on the machine
    assert not ends["completed too early"]
    assert scene.gaps > 0
    assert not (await begin_again(scene, head)).tally.wrong


@pytest.mark.timeout(900)
def test_nothing_is_lost_and_nothing_comes_twice(tmp_path: Path) -> None:
    with site(tmp_path) as there:
        parts = there.platform.parts()
        try:
            asyncio.run(soak(there, parts))
        finally:
            parts.close()
    assert there.gateway.complaints() == []
