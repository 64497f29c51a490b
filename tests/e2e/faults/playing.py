"""Plays one fault: submits its jobs, strikes at its moment, heals, waits for every end, and judges what came of it."""

import asyncio
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from loop.jobs import SUBMIT, files, pool
from tests.e2e.faults.collecting import collect
from tests.e2e.faults.fault import Fault, Until, When, Work
from tests.e2e.faults.following import Story, follow, patiently
from tests.e2e.faults.judging import Verdict, judge
from tests.e2e.faults.report import Row
from tests.e2e.faults.scene import Scene, UnderWay, say

CODE = Path(__file__).parents[3] / "scripts" / "e2e" / "code" / "lines"
PAUSE_S = 0.5
SUBMIT_S = 120
REACHED_S = 240
CANCEL = "mutation ($id: ID!) { cancelJob(id: $id, graceSeconds: 0) { status } }"
STATES = {When.PENDING: "PENDING", When.RUNNING: "RUNNING", When.FINISHING: "FINISHING"}
CLOCKS = {"preRunningSeconds": 1800, "activeSeconds": 3600}


async def play(scene: Scene, fault: Fault) -> Row:
    """The row of a fault, however it goes: what breaks in the harness itself is a problem of the row."""
    say(f"… {fault.name}")
    began, healed = time.monotonic(), False
    try:
        await _until_struck(scene, fault)
        await _until_its_time_is_over(scene, fault)
        await fault.heal(scene)
        healed = True
        await _until_all_ended(scene, fault)
    except Exception as failed:  # noqa: BLE001  the other faults still have something to tell
        scene.problems.append(f"{type(failed).__name__}: {failed}"[:600])
    finally:
        if not healed:
            await _heal(scene, fault)
    verdicts = await _verdicts(scene, fault)
    await scene.end_tasks()
    row = row_of(fault, len(scene.jobs), verdicts, scene.problems)
    for problem in row.problems:
        say(f"  {problem}")
    say(f"  {'ok' if row.is_ok else 'FAILED'} after {time.monotonic() - began:.0f} s")
    return row


async def _until_struck(scene: Scene, fault: Fault) -> None:
    if fault.when is When.SUBMIT:
        await _strike(scene, fault)
        await _submit_all(scene, fault)
        return
    await _submit_all(scene, fault)
    state = STATES[fault.when]
    reached = (job.story.reached(state) for job in scene.jobs[: fault.strikes_at])
    try:
        await asyncio.wait_for(asyncio.gather(*reached), REACHED_S)
    except TimeoutError:
        raise RuntimeError(f"not every job came to {state} within {REACHED_S} s, so it was not struck") from None
    await _strike(scene, fault)


async def _strike(scene: Scene, fault: Fault) -> None:
    scene.struck_at = time.time()
    say(f"  strikes {fault.when}")
    await fault.strike(scene)


async def _until_its_time_is_over(scene: Scene, fault: Fault) -> None:
    until = time.monotonic() + fault.lasts_s
    if fault.until is Until.TOLD:
        told = (job.story.told(fault.shows, scene.struck_at) for job in scene.jobs[: fault.strikes_at])
        with suppress(TimeoutError):  # which the verdict will say
            await asyncio.wait_for(asyncio.gather(*told), fault.limit_s)
    elif fault.until is Until.ENDED:
        await _until_all_ended(scene, fault)
    while fault.rounds and time.monotonic() < until:
        await _all_ended(scene, until - time.monotonic())
        if time.monotonic() < until:
            await _submit_all(scene, fault)
    await asyncio.sleep(max(0.0, until - time.monotonic()))


async def _all_ended(scene: Scene, seconds: float) -> None:
    ends = (job.story.until(lambda story: story.has_ended) for job in scene.jobs)
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.gather(*ends), seconds)


async def _until_all_ended(scene: Scene, fault: Fault) -> None:
    """Wait for the ends, and for what is told of them; whoever does not end is left to the judge."""
    await _all_ended(scene, fault.limit_s)


async def _heal(scene: Scene, fault: Fault) -> None:
    try:
        await fault.heal(scene)
    except Exception as failed:  # noqa: BLE001
        scene.problems.append(f"not healed: {type(failed).__name__}: {failed}"[:600])


# --- jobs


async def _submit_all(scene: Scene, fault: Fault) -> None:
    for work in fault.works:
        scene.jobs.append(await _submitted(scene, fault, work))


async def _submitted(scene: Scene, fault: Fault, work: Work) -> UnderWay:
    tag, lines = secrets.token_hex(6), int(work.seconds / PAUSE_S)
    marks = scene.site.marks / tag
    marks.mkdir()
    marks.chmod(0o1777)  # the image's user may be anybody
    env = {"MARKS": f"{scene.site.marks_inside}/{tag}", "LINES": str(lines), "PAUSE_S": str(PAUSE_S), **work.env}
    wanted = {"spec": spec(work, env), "code": {"files": files(CODE)}, "idempotencyKey": f"faults-{tag}"}
    answer = await patiently(SUBMIT_S, "submitJob", lambda: scene.site.gateway.ask(SUBMIT, input=wanted))
    if answer["submitJob"]["job"] is None:
        raise RuntimeError(f"the job of {fault.name} was refused: {answer['submitJob']['userErrors']}")
    story = Story(answer["submitJob"]["job"]["id"])
    scene.begin(follow(scene.site.gateway, story))
    return UnderWay(story, marks, lines)


def spec(work: Work, env: dict[str, str]) -> dict[str, Any]:
    """The job of a work: one machine, and one of the other series if it has a worker."""
    other = {"h200": "b200", "b200": "h200"}[work.series]
    pools = [pool("train", work.series), *([pool("second", other)] if work.worker else [])]
    return {
        "name": f"fault {work.name}",
        "command": ["python3", "main.py"],
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "pools": pools,
        "deadlines": CLOCKS,
        "cancelGraceSeconds": 5,
        **work.spec,
    }


# --- what came of it


async def _verdicts(scene: Scene, fault: Fault) -> list[Verdict]:
    verdicts: list[Verdict] = []
    for number, job in enumerate(scene.jobs):
        work = fault.works[number % len(fault.works)]
        try:
            await _log_is_told(job.story)
            evidence = await collect(scene, job.story, job.marks)
        except Exception as failed:  # noqa: BLE001
            scene.problems.append(f"{job.story.id}: can't be judged: {type(failed).__name__}: {failed}"[:600])
            continue
        shows = fault.shows if number < fault.strikes_at else frozenset[str]()
        verdicts.append(judge(evidence, work.ends, struck_at=scene.struck_at, shows=shows, may_miss=work.may_miss))
        if verdicts[-1].lost:
            await _cancel(scene, job.story)
    return verdicts


async def _log_is_told(story: Story) -> None:
    """The last lines may come after the last state."""
    with suppress(TimeoutError):
        await asyncio.wait_for(story.log_ended.wait(), 30)


async def _cancel(scene: Scene, story: Story) -> None:
    """So that one that is stuck is in nobody's way."""
    with suppress(RuntimeError):
        await patiently(20, f"cancelJob of {story.id}", lambda: scene.site.gateway.ask(CANCEL, id=story.id))


def row_of(fault: Fault, jobs: int, verdicts: Sequence[Verdict], problems: Sequence[str]) -> Row:
    return Row(
        fault=fault.name,
        when=fault.when,
        jobs=jobs,
        right=sum(one.right for one in verdicts),
        lost=sum(one.lost for one in verdicts) + jobs - len(verdicts),
        doubled=sum(one.doubled for one in verdicts),
        left=sum(one.left for one in verdicts),
        whole=sum(one.whole for one in verdicts),
        reason_s=tuple(one.reason_s for one in verdicts if one.reason_s is not None),
        released_s=tuple(one.released_s for one in verdicts if one.released_s is not None),
        problems=(*problems, *(problem for one in verdicts for problem in one.problems)),
    )
