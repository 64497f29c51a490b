"""Which objects in a fleet are nobody's: what is there against what the database says of its run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from starforge.domain.job import Attempt, Job
from starforge.domain.names import JobId, RunKey
from starforge.domain.observation import RunPhase, RunSeen
from starforge.domain.reason import Reason
from starforge.domain.teardown import REMAINING_MAX, Found, RemainingObject, blocked


@dataclass(frozen=True)
class Stray:
    """A run that is in the fleet and should not be. `proven` if the database says that it was released."""

    run: RunKey
    found: tuple[Found, ...]
    why: str
    proven: bool
    known: bool

    @property
    def since(self) -> datetime:
        """When the oldest object of it was made."""
        return min(one.created_at for one in self.found)

    @property
    def terminating(self) -> bool:
        return all(one.terminating for one in self.found)

    @property
    def objects(self) -> tuple[RemainingObject, ...]:
        return tuple(one.what for one in self.found[:REMAINING_MAX])

    def held(self, at: datetime) -> Reason | None:
        """What keeps it, if it was asked to go and does not."""
        asked = [one.what.deletion_requested_at for one in self.found if one.what.deletion_requested_at]
        return blocked(self.objects, since=max(asked), at=at) if self.terminating else None

    @property
    def name(self) -> str:
        """Its main object, and how many others there are."""
        first, more = self.found[0].what.object, len(self.found) - 1
        return f"{first.kind} {first.name}" + (f" and {more} more" if more else "")


def by_run(found: Iterable[Found]) -> Mapping[RunKey, tuple[Found, ...]]:
    """What there is of each run, in order of the runs."""
    runs: dict[RunKey, list[Found]] = {}
    for one in found:
        runs.setdefault(one.run, []).append(one)
    return {run: tuple(runs[run]) for run in sorted(runs)}


def stray(run: RunKey, found: tuple[Found, ...], job: Job | None, attempts: Sequence[Attempt] = ()) -> Stray | None:
    """The run as a stray; None if it is alive or on its way out, or may be another installation's.

    `attempts` are all of the job. One that was released can't live again, so what is there of it is a stray for
    certain: a launch that hung may have made it. What the database does not know may be known to it in a moment.
    """
    if job is None:
        why = f"This installation has no job {run.job}."
        return Stray(run, found, why, proven=False, known=False) if all(one.claimed for one in found) else None
    attempt = next((one for one in (job.attempt, *attempts) if one.number == run.attempt), None)
    if attempt is None:
        why = f"{job.id} has no attempt {run.attempt}; its newest is {job.attempt.number}."
        return Stray(run, found, why, proven=False, known=True)
    if attempt.released_at is None:
        return None
    why = f"Attempt {run.attempt} was released at {attempt.released_at:%Y-%m-%d %H:%M:%S} UTC."
    return Stray(run, found, why, proven=True, known=True)


def came_late(seen: RunSeen, job: Job) -> bool:
    """Whether something is there of an attempt that was released, and is not on its way out.

    A job gets its next attempt only when the one before was released.
    """
    number, newest = seen.run.attempt, job.attempt
    released = number < newest.number or (number == newest.number and newest.released_at is not None)
    return released and _stays(seen)


def _stays(seen: RunSeen) -> bool:
    rayjob, raycluster = seen.rayjob, seen.raycluster
    run = seen.phase is not RunPhase.ABSENT and (rayjob is None or rayjob.deletion_requested_at is None)
    cluster = raycluster is not None and raycluster.deletion_requested_at is None
    return run or cluster or any(not pod.terminating for pod in seen.pods)


def superseded(runs: Iterable[RunKey], jobs: Mapping[JobId, Job]) -> list[JobId]:
    """Jobs of which an earlier attempt is among the runs."""
    return sorted({run.job for run in runs if run.job in jobs and run.attempt < jobs[run.job].attempt.number})
