"""Every process of ours killed in a random order while jobs run: each job ends as it should, once, and nothing is left.

KILL_SEED, KILL_SECONDS and KILL_JOBS scale it. Run it with `-s` to see what was killed.
"""

import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from starforge.adapters.bus.celery_config import QUEUE
from starforge.adapters.wiring import Parts
from starforge.domain.actions.perform import LEASE_S
from starforge.domain.job import Job, JobState
from starforge.domain.log_parts import read_log
from starforge.domain.logs import DRIVER, LogState
from starforge.domain.names import JobId, RunKey
from starforge.domain.queries import EventFilter, JobFilter, LogRange, Window
from starforge.domain.reason import ReasonCode
from starforge.domain.timeline import CommandFailed, StateChanged
from tests.integration.gateway import SUBMIT, TOKEN, a_submission
from tests.integration.mortals import PATIENCE_S, Mortals, mortals

SEED = int(os.environ.get("KILL_SEED", "5"))
SECONDS = float(os.environ.get("KILL_SECONDS", "60"))
JOBS = int(os.environ.get("KILL_JOBS", "20"))
BETWEEN_S = (1.0, 5.0)
LOOK_S = 0.5
"""Between two looks at what nothing tells us of."""
ENDS_WITHIN_S = 15 * LEASE_S
"""After the last process was killed: the leases of what it did run out, one after the other."""
CANCEL = "mutation($id: ID!) { cancelJob(id: $id) { userErrors { code message } } }"
EVERY = JobFilter()
OUTCOMES = {
    "SUCCEED": (JobState.SUCCEEDED, None),
    "FAIL": (JobState.FAILED, ReasonCode.USER_CODE),
    "FOREVER": (JobState.CANCELED, ReasonCode.CANCELED),
}


def say(text: str) -> None:
    sys.stderr.write(text + "\n")


def asked(there: Mortals, query: str, **variables: Any) -> Any:
    """What a gateway answers, sent again until one does: mutations are safe to repeat."""
    end = time.monotonic() + ENDS_WITHIN_S
    while time.monotonic() < end:
        answer = answered(there, {"query": query, "variables": variables})
        if answer is not None and "errors" not in answer:
            return answer["data"]
        assert answer is None or answer["errors"][0]["extensions"]["retryable"], answer
        time.sleep(LOOK_S)
    raise AssertionError("no gateway answers")


def answered(there: Mortals, body: dict[str, Any]) -> Any:
    try:
        return httpx.post(there.url, json=body, headers={"authorization": f"Bearer {TOKEN}"}, timeout=20).json()
    except httpx.TransportError:
        return None


def submitted(there: Mortals, name: str, outcome: str, seconds: float) -> JobId:
    given = a_submission(name=name, outcome=outcome, seconds=seconds, key=f"key-{name}")
    payload = asked(there, SUBMIT, input=given)["submitJob"]
    assert payload["userErrors"] == []
    return JobId(payload["job"]["id"])


def until(there: Callable[[], bool], *, within_s: float, what: str) -> None:
    end = time.monotonic() + within_s
    while not there():
        assert time.monotonic() < end, what
        time.sleep(LOOK_S)


def kill_some(there: Mortals, chance: random.Random, seconds: float) -> Counter[str]:
    """Kill one of the processes every few seconds and start it again; how often each was."""
    killed = Counter[str]()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(chance.uniform(*BETWEEN_S))
        name = chance.choice([*there.all, "redis"])
        killed[name] += 1
        if name == "redis":
            with redis.Redis.from_url(there.redis.url, socket_timeout=10) as connection:
                connection.flushall()
            continue
        victim = there.all[name]
        chance.choice([victim.kill, victim.kill_alone])()
        victim.start()
    return killed


def ended(parts: Parts, jobs: list[JobId]) -> bool:
    found = parts.ports.store.jobs_by_id(jobs)
    return all(found[job].ended for job in jobs)


def is_well(parts: Parts, job: Job, outcome: str) -> list[str]:
    """What is wrong with a job that has ended."""
    why = job.attempt.reason
    entries = [entry for _, entry in parts.ports.store.entry_page(EventFilter(jobs=(job.id,)), Window(1000)).rows]
    states = Counter(entry.detail.after for entry in entries if isinstance(entry.detail, StateChanged))
    parked = [entry for entry in entries if isinstance(entry.detail, CommandFailed) and entry.detail.parked]
    checks = {
        f"ended {job.state} for {why}": (job.state, why.code if why else None) == OUTCOMES[outcome],
        f"states told {states}": max(states.values()) == 1,
        f"parked {parked}": not parked,
        "its logs are not kept": bool(job.attempt.archive and job.attempt.archive.verified_at),
        f"left {parts.ports.fleet.remaining(job.run)}": not parts.ports.fleet.remaining(job.run),
        **log_checks(parts, job.run),
    }
    return [f"{job.id} ({outcome}): {what}" for what, good in checks.items() if not good]


def log_checks(parts: Parts, run: RunKey) -> dict[str, bool]:
    sources = {source.key: source for source in parts.ports.store.log_sources([run]).get(run, ())}
    driver = sources.get(DRIVER)
    if driver is None:
        return {}
    which = LogRange(run, DRIVER, 1, driver.lines)
    texts = [line.text for line in read_log(parts.ports.store, parts.ports.objects, which)]
    steps = [int(found[1]) for text in texts if (found := re.search(r"\bstep (\d+)/", text))]
    return {
        f"the log is {driver.state}": driver.state is LogState.CLOSED,
        f"steps {steps}": steps == list(range(1, len(steps) + 1)),
    }


@pytest.mark.timeout(1500)
def test_no_job_is_lost_or_doubled_whatever_is_killed(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with mortals(tmp_path / "site") as there:
        parts = there.parts()
        try:
            wanted = [list(OUTCOMES)[number % len(OUTCOMES)] for number in range(JOBS)]
            jobs = {
                submitted(there, f"job-{number}", outcome, chance.uniform(3, SECONDS / 2)): outcome
                for number, outcome in enumerate(wanted)
            }
            killed = kill_some(there, chance, SECONDS / 2)
            for job in (job for job, outcome in jobs.items() if outcome == "FOREVER"):
                asked(there, CANCEL, id=job)
            killed += kill_some(there, chance, SECONDS / 2)
            began = time.monotonic()
            until(lambda: ended(parts, list(jobs)), within_s=ENDS_WITHIN_S, what="not every job has ended")
            say(f"killed {dict(killed)}; all had ended {time.monotonic() - began:.0f} s later")
            found = parts.ports.store.jobs_by_id(list(jobs))
            wrong = [what for job, outcome in jobs.items() for what in is_well(parts, found[job], outcome)]
            assert not wrong, "\n".join(wrong)
            assert parts.ports.store.job_count(EVERY, at_most=1000) == JOBS
        finally:
            parts.close()


def test_a_redis_that_lost_everything_loses_no_job(tmp_path: Path) -> None:
    """Messages were sent and are gone before anybody could take them: the tick sends what is due again."""
    with mortals(tmp_path / "site") as there:
        parts = there.parts()
        try:
            first = submitted(there, "first", "SUCCEED", 1)
            until(lambda: ended(parts, [first]), within_s=ENDS_WITHIN_S, what="the first job has not ended")
            workers = [there.all[name] for name in ("worker-1", "worker-2", "beat-1", "beat-2")]
            for worker in workers:
                worker.kill()
            second = submitted(there, "second", "SUCCEED", 1)
            with redis.Redis.from_url(there.redis.url, socket_timeout=10) as connection:
                until(lambda: connection.llen(QUEUE) > 0, within_s=PATIENCE_S, what="no message was sent")
                connection.flushall()
            for worker in workers:
                worker.start()
            until(lambda: ended(parts, [second]), within_s=ENDS_WITHIN_S, what="the second job has not ended")
            found = parts.ports.store.jobs_by_id([first, second])
            assert [what for job in (first, second) for what in is_well(parts, found[job], "SUCCEED")] == []
        finally:
            parts.close()
