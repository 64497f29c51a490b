"""StarForge's gateway as it runs in production (`starforge api`), over SQLite, with jobs to look at."""

import contextlib
import json
import secrets
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from gateway.documents import EVENTS, JOB, TOKEN
from gateway.processes import Server

from starforge.adapters.settings import Settings, load_settings
from starforge.adapters.wiring import build, prepare, tokens
from starforge.domain.actions.create_token import create_token
from starforge.domain.changes import Aspect, Changes
from starforge.domain.job import Actor, ActorKind, Job, JobState, advance, new_attempt
from starforge.domain.names import JobId
from starforge.domain.progress import MetricPoint, report
from starforge.domain.rights import Role
from starforge.domain.spec import JobSpec, PoolDraft, SpecDraft
from starforge.domain.spec_rules import freeze
from starforge.domain.tokens import TokenDraft
from tests.servers import RedisServer, free_port, redis_server

JOBS = 500
TOKENS = 20
"""A token has 1,000 connections at most."""
NO_LIMIT = 2**31 - 1
PROJECT = "default"
ME = Actor("bench", ActorKind.TOKEN)


@dataclass(frozen=True)
class Site:
    """A server at work with its Redis, and how it is spoken to."""

    name: str
    server: Server
    redis: RedisServer
    path: str
    jobs: tuple[str, ...]
    tokens: tuple[str, ...]
    publisher_env: dict[str, str]
    what: str
    exact_what: str
    resume: bool

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    def subscription(self, jobs: int, *, exact: bool = False) -> dict[str, Any]:
        """What the load generator has to know: the document and its variables. `exact`: every change is promised."""
        ids = self.jobs[:jobs]
        if exact and self.exact_what == "event":
            variables: list[dict[str, Any]] = [{"jobs": [one]} for one in ids]
            fields = {"step_field": '"step":', "time_field": '"published":'}
            return {"query": EVENTS, "variables": variables, "resume": True, **fields}
        variables = [{"id": one} for one in ids]
        return {
            "query": JOB, "variables": variables, "resume": self.resume,
            "step_field": '"step":', "time_field": '"value":',
        }  # fmt: skip


def environment(folder: Path, redis: RedisServer, port: int) -> dict[str, str]:
    return {
        "FORGE_DEFAULT_FLEET_KIND": "simulated",
        "FORGE_DATA_DIR": str(folder / "data"),
        "FORGE_REDIS_URL": redis.url,
        "FORGE_PORT": str(port),
        "FORGE_BOOTSTRAP_TOKEN": TOKEN,
        "FORGE_RATE_LIMIT_POINTS": str(NO_LIMIT),
        "FORGE_RATE_LIMIT_PER_SECOND": str(NO_LIMIT),
    }


def a_job(number: int, spec: JobSpec, at: datetime) -> Job:
    """A job that runs and has reported once."""
    job = Job(JobId(f"job-{number:020}"), spec, at, ME, at, new_attempt(spec, 1, ME, at))
    job = advance(job, JobState.RUNNING, at)
    progress = report(None, 0, 1_000_000, (MetricPoint("published", 0.0, at, 0),), at)
    return job.with_attempt(replace(job.attempt, progress=progress))


def seed(env: dict[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Make the database; the ids of its jobs, the newest first, and its tokens."""
    settings = load_settings(env)
    prepare(settings)
    parts = build(settings)
    draft = SpecDraft("train-resnet", ("python3", "train.py"), (PoolDraft("main", "h200", 1, 8),), PROJECT)
    spec, at = freeze(draft, parts.ports.fleet.defaults()), datetime.now(UTC)
    jobs = [a_job(number, spec, at) for number in range(JOBS)]
    changes = Changes()
    for job in jobs:
        changes.job(job, Aspect.STATE)
    try:
        parts.ports.store.commit(changes, at=at)
    finally:
        parts.close()
    return tuple(job.id for job in reversed(jobs)), tuple(a_token(settings, number) for number in range(TOKENS))


def a_token(settings: Settings, number: int) -> str:
    draft = TokenDraft(f"dashboard {number}", Role.ADMIN, project=PROJECT)
    with tokens(settings) as store:
        _, shown = create_token(store, draft, at=datetime.now(UTC), random=lambda: secrets.token_hex(16))
    return shown.text


def rows(ids: tuple[str, ...]) -> str:
    """The page of `jobs(first: 50)` as JSON, for peers to have in memory."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    same = {
        "name": "train-resnet", "project": "default", "fleet": "simulated", "state": "RUNNING", "outcome": None,
        "attempt": 1, "gpus": 8, "revision": 1, "createdAt": at, "updatedAt": at,
    }  # fmt: skip
    return json.dumps([{"id": one, **same} for one in ids[:50]])


@contextlib.contextmanager
def starforge(folder: Path) -> Iterator[Site]:
    """Our gateway in a fresh folder."""
    with redis_server(folder) as redis:
        port = free_port()
        env = environment(folder, redis, port)
        jobs, shown = seed(env)
        command = [sys.executable, "-m", "starforge.cli.main", "api"]
        server = Server(command, port, env=env, log=folder / "server.log", cwd=folder)
        try:
            yield Site("ours", server, redis, "/graphql", jobs, shown, env, "job", "event", resume=True)
        finally:
            server.stop()
