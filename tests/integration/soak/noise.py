"""Bursts of changes, written as an observer writes them: committed, then published."""

from datetime import UTC, datetime

from starforge.adapters.wiring import Parts
from starforge.domain.changes import Changes
from starforge.domain.job import JobState
from starforge.domain.names import JobId, RunKey
from starforge.domain.timeline import Entry, Severity, StateChanged

COMMIT = 250
"""Entries of one commit, which is one message."""


def burst(parts: Parts, job: str, *, text: str = "noise") -> int:
    """One commit of events about a job; how many."""
    at, run = datetime.now(UTC), RunKey(JobId(job), 1)
    detail = StateChanged(JobState.RUNNING, JobState.RUNNING)
    names = [f"noise-{parts.ports.random()}" for _ in range(COMMIT)]
    changes = Changes(entries=[Entry(name, run, Severity.INFO, text, at, at, detail) for name in names])
    parts.ports.publish(parts.ports.store.commit(changes, at=at))
    return len(names)
