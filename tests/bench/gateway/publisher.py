"""Changes jobs at a set rate and publishes that: for ours by its own store and bus, for peers the equal JSON on Redis.

`publisher.py config.json`, a file with `{"what": "job" | "event" | "peer", "jobs": [id, …], "rate": changes a second over
all jobs, "redis": url}`. The line `stop` on stdin ends it; it answers with the last step of each job. The number of a
change travels as its step, the time at which it was begun as a metric (seconds since the epoch): for ours the
transaction is in the time that it takes to arrive.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from starforge.adapters.settings import load_settings
from starforge.adapters.wiring import Parts, build
from starforge.domain.changes import Aspect, Changes
from starforge.domain.job import Job
from starforge.domain.names import JobId
from starforge.domain.progress import MetricPoint, report
from starforge.domain.timeline import Entry, Severity, StateChanged

CHANNEL = "bench:jobs"
TOTAL = 1_000_000
LIMIT_S = 0.2

Publish = Callable[[int, int], bool]
"""Publish a step of the job with this index; whether it could be told."""


class OurJobs:
    """Jobs of our store, kept as they are there."""

    def __init__(self, parts: Parts, ids: Sequence[str]) -> None:
        found = parts.ports.store.jobs_by_id([JobId(one) for one in ids])
        self._ports = parts.ports
        self.jobs: list[Job] = [found[JobId(one)] for one in ids]

    def steps(self) -> list[int]:
        return [job.attempt.progress.step or 0 if job.attempt.progress else 0 for job in self.jobs]

    def progress(self, index: int, step: int) -> bool:
        job, at = self.jobs[index], datetime.now(UTC)
        point = MetricPoint("published", time.time(), at, step)
        progress = report(job.attempt.progress, step, TOTAL, (point,), at)
        after = replace(job, updated_at=at, attempt=replace(job.attempt, progress=progress))
        changes = Changes()
        changes.job(after, Aspect.PROGRESS)
        self._commit(changes, at)
        self.jobs[index] = replace(after, revision=job.revision + 1)
        return True

    def event(self, index: int, step: int) -> bool:
        job, at = self.jobs[index], datetime.now(UTC)
        detail = StateChanged(job.state, job.state)
        name = f"event-{self._ports.random()}"
        entry = Entry(name, job.run, Severity.INFO, repr(time.time()), at, at, detail, count=step)
        self._commit(Changes(entries=[entry]), at)
        return True

    def _commit(self, changes: Changes, at: datetime) -> None:
        self._ports.publish(self._ports.store.commit(changes, at=at))


class PeerJobs:
    """The same jobs as JSON on a channel."""

    def __init__(self, redis_url: str, ids: Sequence[str]) -> None:
        self._ids = ids
        self._redis = Redis.from_url(
            redis_url, socket_timeout=LIMIT_S, socket_connect_timeout=LIMIT_S, retry=Retry(NoBackoff(), 1)
        )

    def progress(self, index: int, step: int) -> bool:
        now = time.time()
        metrics = [{"name": "published", "value": now}]
        progress = {"step": step, "total": TOTAL, "fraction": step / TOTAL, "metrics": metrics}
        job = {"id": self._ids[index], "revision": step + 1, "state": "RUNNING", "progress": progress}
        change = {"cursor": f"f1.{step:016}", "kind": "UPDATED", "job": job}
        try:
            self._redis.publish(CHANNEL, json.dumps(change, separators=(",", ":")))
        except RedisError:
            return False
        return True


def run(publish: Publish, steps: list[int], rate: float, stop: threading.Event) -> dict[str, Any]:
    """Publish evenly over the jobs until `stop`."""
    began, count, untold, late = time.monotonic(), 0, 0, 0.0
    while not stop.wait(max(0.0, began + count / rate - time.monotonic())):
        late = max(late, time.monotonic() - began - count / rate)
        index = count % len(steps)
        steps[index] += 1
        untold += not publish(index, steps[index])
        count += 1
    seconds = time.monotonic() - began
    return {
        "event": "stopped",
        "last": steps,
        "published": count,
        "untold": untold,
        "rate": count / seconds,
        "late_s": late,
    }


def main() -> None:
    config = json.loads(Path(sys.argv[1]).read_text())
    stop = threading.Event()
    threading.Thread(target=_await_stop, args=(stop,), daemon=True).start()
    if config["what"] == "peer":
        peer = PeerJobs(config["redis"], config["jobs"])
        print(json.dumps(run(peer.progress, [0] * len(config["jobs"]), config["rate"], stop)), flush=True)
        return
    parts = build(load_settings(os.environ))
    ours = OurJobs(parts, config["jobs"])
    events = config["what"] == "event"
    publish, steps = (ours.event, [0] * len(ours.jobs)) if events else (ours.progress, ours.steps())
    try:
        print(json.dumps(run(publish, steps, config["rate"], stop)), flush=True)
    finally:
        parts.close()


def _await_stop(stop: threading.Event) -> None:
    sys.stdin.readline()
    stop.set()


if __name__ == "__main__":
    main()
