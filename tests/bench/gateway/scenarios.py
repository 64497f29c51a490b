"""The scenarios. Each takes a site in a fresh state and gives the figures of one or more rows."""

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.documents import new_page, same_page, submission
from gateway.ours import Site
from gateway.processes import Core
from gateway.tools import Tool, loadgen, publisher

MIB = 1024 * 1024
Row = dict[str, Any]
Fresh = Callable[[], contextlib.AbstractContextManager[tuple[Site, Path]]]
"""Starts a server in a fresh folder."""


@dataclass(frozen=True)
class Size:
    """How long is measured, and how much of it."""

    seconds: float
    subscribers: tuple[int, ...]
    with_mutations: int
    spread_subscribers: int
    exact_subscribers: int


FULL = Size(30, (1_000, 5_000, 10_000), 5_000, 2_000, 500)
QUICK = Size(5, (1_000,), 1_000, 1_000, 100)
ONE_JOB_RATE = 10.0
SPREAD_RATE = 250.0
"""Changes a second over 500 jobs: with 2,000 subscribers, four a job, 1,000 messages a second."""
MUTATION_RATE = 10.0
AWAY_S = 2.0
SETTLE_S = 2.0
DRAIN_S = 10.0
PATIENCE_S = 60.0
CONCURRENCY = 16


@contextlib.contextmanager
def subscribers(site: Site, folder: Path, count: int, jobs: int, name: str = "crowd", **options: Any) -> Iterator[Tool]:
    asked = site.subscription(jobs, **options)
    common = {"mode": "subscribe", "host": site.host, "path": site.path, "tokens": site.tokens}
    with loadgen(folder, name, connections=count, in_flight=64, **common, **asked) as crowd:
        yield crowd


@contextlib.contextmanager
def requests(site: Site, folder: Path, body: str, *, rate: float = 0, concurrency: int = CONCURRENCY) -> Iterator[Tool]:
    common = {"mode": "http", "host": site.host, "path": site.path, "tokens": site.tokens}
    with loadgen(folder, "requests", concurrency=concurrency, rate=rate, body=body, **common) as tool:
        yield tool


@contextlib.contextmanager
def published(site: Site, folder: Path, jobs: int, rate: float, *, exact: bool = False) -> Iterator[Tool]:
    what = site.exact_what if exact else site.what
    config = {"what": what, "jobs": site.jobs[:jobs], "rate": rate, "redis": site.redis.url}
    with publisher(folder, site.publisher_env, **config) as tool:
        yield tool


def report(tool: Tool, last: list[int] | None = None) -> Row:
    tool.send("report" if last is None else f"report {json.dumps(last)}")
    return tool.wait("report")


def ended(crowd: Tool, pub: Tool, drain_s: float = DRAIN_S) -> Row:
    """Stop publishing, wait for what is on its way, and say what was lost, doubled, and still is not there."""
    pub.send("stop")
    told = pub.wait("stopped")
    deadline = time.monotonic() + drain_s
    while (end := report(crowd, told["last"]))["missing"] and time.monotonic() < deadline:
        time.sleep(0.2)
    return {
        "published": told["published"], "published_per_s": told["rate"], "publisher_late_s": told["late_s"],
        **{key: end[key] for key in ("lost", "doubled", "missing", "live", "cuts")},
    }  # fmt: skip


def warm_up(site: Site, folder: Path, *, mutate: bool) -> None:
    """Let it compile and cache what it can: a few subscribers for a second, a few mutations."""
    with contextlib.ExitStack() as also:
        if mutate:
            also.enter_context(requests(site, folder, submission("warm"), rate=MUTATION_RATE))
        crowd = also.enter_context(subscribers(site, folder, 20, 1))
        crowd.wait("ready")
        with published(site, folder, 1, ONE_JOB_RATE) as pub:
            crowd.wait("warm")
            time.sleep(1)
            ended(crowd, pub)


def measured(site: Site, crowd: Tool, seconds: float) -> Row:
    """Figures of a crowd while it is published to."""
    crowd.send("measure")
    core = Core(site.server)
    time.sleep(seconds)
    return figures_of(report(crowd), core)


def figures_of(told: Row, core: Core) -> Row:
    """What the generator told, with what it took of the server's core."""
    used = core.server_s()
    kept = ("per_second", "p50_ms", "p99_ms", "max_ms", "bytes_per_message", "generator_cpu", "failures")
    mine = {
        "cpu_us": used * 1e6 / max(told["count"], 1),
        "server_cpu": used / told["seconds"],
        "others_cpu": core.others(),
    }
    return {**mine, **{key: told[key] for key in kept}}


@dataclass(frozen=True)
class Crowd:
    """`count` subscribers of `jobs` jobs that change `rate` times a second altogether, beside mutations or not."""

    count: int
    jobs: int = 1
    rate: float = ONE_JOB_RATE
    mutate: bool = False


def fan_out(site: Site, folder: Path, size: Size, of: Crowd) -> Row:
    """Figures of a crowd."""
    count = of.count
    warm_up(site, folder, mutate=of.mutate)
    rss = site.server.rss()
    with subscribers(site, folder, count, of.jobs) as crowd, contextlib.ExitStack() as also:
        setup = crowd.wait("ready", 180)["setup_seconds"]
        time.sleep(SETTLE_S)
        per_subscriber = (site.server.rss() - rss) / count
        pub = also.enter_context(published(site, folder, of.jobs, of.rate))
        crowd.wait("warm", 120)
        time.sleep(SETTLE_S)
        mutations = also.enter_context(requests(site, folder, submission(), rate=MUTATION_RATE)) if of.mutate else None
        if mutations:
            mutations.send("measure")
        row = measured(site, crowd, size.seconds)
        if mutations:
            told = report(mutations)
            row |= {
                f"submit_{key}": told[key] for key in ("count", "unanswered", "p50_ms", "p99_ms", "max_ms", "failures")
            }
        peak = (site.server.rss() - rss) / count
        row |= ended(crowd, pub)
    return {
        "server": site.name, "subscribers": count, "jobs": of.jobs, "setup_s": setup,
        "kib_per_subscriber": per_subscriber / 1024, "kib_per_subscriber_busy": peak / 1024, **row,
    }  # fmt: skip


def queries(site: Site, folder: Path, size: Size, body: str, page: str) -> Row:
    """`jobs(first: 50)`, as many requests as are answered on 16 connections."""
    with requests(site, folder, body) as tool:
        tool.wait("ready")
        time.sleep(SETTLE_S)
        return {"server": site.name, "page": page, **measured(site, tool, size.seconds)}


def outage(site: Site, folder: Path, size: Size, what: str, happen: Callable[[], None]) -> Row:
    """What is lost and doubled when something goes away while `events`, or what comes next to it, are followed."""
    count = size.exact_subscribers
    with subscribers(site, folder, count, 1, exact=True) as crowd:
        crowd.wait("ready")
        with published(site, folder, 1, ONE_JOB_RATE, exact=True) as pub:
            crowd.wait("warm")
            crowd.send("measure")
            time.sleep(SETTLE_S)
            happen()
            time.sleep(size.seconds)
            row = ended(crowd, pub, PATIENCE_S)
            figures = report(crowd)
    expected = figures["count"] - row["doubled"] + row["lost"] + row["missing"]
    return {
        "server": site.name, "outage": what, "subscribers": count, "expected": expected, "alive": site.server.alive,
        "max_ms": figures["max_ms"], "failures": figures["failures"], **row,
    }  # fmt: skip


def redis_away(site: Site) -> None:
    site.redis.stop()
    time.sleep(AWAY_S)
    site.redis.start()


def a(site_of: Fresh, size: Size) -> Iterator[Row]:
    for count in size.subscribers:
        with site_of() as (site, folder):
            yield {"scenario": "a", **fan_out(site, folder, size, Crowd(count))}


def b(site_of: Fresh, size: Size) -> Iterator[Row]:
    with site_of() as (site, folder):
        crowd = Crowd(size.spread_subscribers, len(site.jobs), SPREAD_RATE)
        yield {"scenario": "b", **fan_out(site, folder, size, crowd)}


def c(site_of: Fresh, size: Size) -> Iterator[Row]:
    for page, body in (("asked before", same_page()), ("new", new_page())):
        with site_of() as (site, folder):
            yield {"scenario": "c", **queries(site, folder, size, body, page)}


def d(site_of: Fresh, size: Size) -> Iterator[Row]:
    with site_of() as (site, folder):
        yield {"scenario": "d", **fan_out(site, folder, size, Crowd(size.with_mutations, mutate=True))}


def e(site_of: Fresh, size: Size) -> Iterator[Row]:
    with site_of() as (site, folder):
        yield {"scenario": "e", **outage(site, folder, size, "Redis away for 2 s", lambda: redis_away(site))}
    with site_of() as (site, folder):
        yield {"scenario": "e", **outage(site, folder, size, "server restarted", site.server.restart)}


SCENARIOS = {"a": a, "b": b, "c": c, "d": d, "e": e}
