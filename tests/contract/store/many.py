"""Many jobs at once, written past the store, which would take minutes for them."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Table, insert, text

from starforge.adapters.store import SqlStore
from starforge.adapters.store.job_rows import birth_of, values_of
from starforge.adapters.store.tables import ATTEMPT, JOB, JOB_LABEL, JOB_SERIES
from starforge.domain.job import Actor, ActorKind, Job, JobOutcome, JobState, StateSpan
from starforge.domain.names import Digest, JobId
from starforge.domain.reason import ReasonCode, reason
from starforge.domain.spec import Label
from tests.contract.store.examples import AT, a_job, a_spec, after

AT_ONCE = 2_000
SERIES = ("h200", "a100", "b200", "l4")
STATES = (*[JobState.SUCCEEDED] * 70, *[JobState.FAILED] * 20, *[JobState.CANCELED] * 5, *JobState)
OUTCOMES = {state: JobOutcome(state.value) for state in JobState if state.value in JobOutcome.__members__}


def many_jobs(number: int) -> Iterator[Job]:
    """Jobs as an installation has them after a while: most ended, few of each value that people look for."""
    seed = random.Random(4)
    for one in range(number):
        state = seed.choice(STATES)
        spec = a_spec(
            f"{seed.choice(('train', 'eval', 'sweep'))}-{one % 500:03}", project=f"project-{seed.randrange(40):02}",
            fleet=f"fleet-{seed.randrange(20):02}", series=(seed.choice(SERIES) if one % 50 else "rare",),
            labels=(Label("batch", f"{one // 100}"), Label("team", f"team-{seed.randrange(20)}")),
            priority=seed.randint(-100, 100), gpus=seed.randint(0, 64),
        )  # fmt: skip
        job = a_job(spec=spec, at=after(one), by=Actor(f"user-{seed.randrange(50):02}", ActorKind.USER))
        codes = (*[ReasonCode.USER_CODE] * 30, *ReasonCode)
        why = reason(seed.choice(codes), "Why.", AT) if state is JobState.FAILED else None
        ended = after(one + seed.randrange(600)) if state in OUTCOMES else None
        attempt = replace(
            job.attempt, spans=(StateSpan(state, AT),), outcome=OUTCOMES.get(state), reason=why,
            started_at=after(one + 1) if one % 3 else None, ended_at=ended,
        )  # fmt: skip
        yield replace(
            job, id=JobId(f"job-{one:06}"), attempt=attempt, updated_at=ended or after(one),
            code=Digest(f"code-{one % 400}"), idempotency_key=f"key-{one}",
        )  # fmt: skip


def fill(store: SqlStore, number: int) -> None:
    """Store many jobs, and let the database look at them so that it plans well."""
    some: list[Job] = []
    with store.database.writing() as connection:
        for job in many_jobs(number):
            some.append(job)
            if len(some) == AT_ONCE:
                _write(connection, some)
                some = []
        _write(connection, some)
        connection.execute(text("ANALYZE"))


def _write(connection: Any, jobs: Sequence[Job]) -> None:
    rows: dict[Table, list[dict[str, Any]]] = {
        JOB: [birth_of(job) | values_of(job) for job in jobs],
        ATTEMPT: [{"job_id": job.id, "number": 1, "document": job.attempt} for job in jobs],
        JOB_SERIES: [{"job_id": job.id, "series": pool.series} for job in jobs for pool in job.spec.pools],
        JOB_LABEL: [{"job_id": job.id, "key": one.key, "value": one.value} for job in jobs for one in job.spec.labels],
    }
    for table, values in rows.items():
        if values:
            connection.execute(insert(table), values)
