"""What ends a job before its clock does: trouble that stays the same when it is tried again."""

import re
from dataclasses import replace
from datetime import datetime, timedelta

from starforge.domain.denials import A_REPEAT, AT_ONCE
from starforge.domain.job import Job, JobState
from starforge.domain.reason import TEXT_MAX, Reason, ReasonCode

NETWORK_S = 150.0
"""Until kubelet has tried an image five times: after 10, 20, 40 and 80 seconds."""
SAME_EVENTS = 4
"""As often as an Event must have been counted before it is more than a hiccup."""
RESTARTS = 3
KILLED = 128
"""Exit codes above it are of what a signal ended."""
OPERATOR_ACTS_S = 30.0
_FINAL_PULL = re.compile(
    r"not found|manifest unknown|unauthorized|authorization failed|access denied|denied:|forbidden|does not exist"
    r"|no match for platform|invalid reference|signature validation failed",
    re.IGNORECASE,
)


def pull_patience_s(waiting: str, said: str) -> float:
    """How long an image that can't be pulled holds a job, by kubelet's reason for waiting and what it says."""
    if waiting == "InvalidImageName":
        return AT_ONCE
    return A_REPEAT if waiting == "ErrImageNeverPull" or _FINAL_PULL.search(said) else NETWORK_S


def event_patience_s(patience_s: float | None, count: int) -> float | None:
    """The patience with what an Event tells: it has no end, so only its repeats show that the trouble stays."""
    if patience_s is None or patience_s == AT_ONCE:
        return patience_s
    return AT_ONCE if count >= SAME_EVENTS else None


def spent(job: Job, at: datetime) -> Reason | None:
    """The reason that ends a job that waits, if it was held by it for as long as that may last."""
    why = job.attempt.reason
    if job.state is not JobState.PENDING or why is None or why.final_at is None or at < why.final_at:
        return None
    return replace(why, message=_with_bound(why))


def _with_bound(why: Reason) -> str:
    if not why.patience_s:
        return why.message
    bound = f" It stayed like this for {why.patience_s:.0f} s, so it is not waited for any longer."
    return why.message[: TEXT_MAX - len(bound)] + bound


def look_again_at(job: Job) -> datetime | None:
    """When a job that waits has to be judged again though nothing new is told; None for when there is something new."""
    why, launched = job.attempt.reason, job.attempt.launched_at
    if job.state is not JobState.PENDING or why is None:
        return None
    if why.code is ReasonCode.STARTING and launched:
        return launched + timedelta(seconds=OPERATOR_ACTS_S)
    return why.final_at
