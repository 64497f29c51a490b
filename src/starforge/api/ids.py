"""Opaque ids of what has no id of its own in the domain, and what they stand for."""

import re

from starforge.domain.names import Digest, JobId, RunKey

_ATTEMPT = re.compile("[0-9]{1,9}")


def attempt(run: RunKey) -> str:
    return f"attempt.{run.job}.{run.attempt}"


def pod(run: RunKey, uid: str) -> str:
    return f"pod.{run.job}.{run.attempt}.{uid}"


def log(run: RunKey, key: str) -> str:
    return f"log.{run.job}.{run.attempt}.{key}"


def capsule(digest: Digest) -> str:
    return f"capsule.{digest}"


def fleet(name: str) -> str:
    return f"fleet.{name}"


def queue(fleet: str, kind: str, name: str) -> str:
    return f"queue.{fleet}.{kind}.{name}"


def capacity(fleet: str) -> str:
    return f"capacity.{fleet}"


def series(fleet: str, name: str) -> str:
    return f"series.{fleet}.{name}"


def node(fleet: str, name: str) -> str:
    return f"node.{fleet}.{name}"


def within(fleet: str, text: str) -> str | None:
    """The name of the series or the node of a fleet whose id this is; None if it is none."""
    named, _, rest = text.partition(".")
    inner = f"{fleet}."
    return rest.removeprefix(inner) if named in ("series", "node") and rest.startswith(inner) else None


def kind(text: str) -> str:
    """What an id is of: job, event, attempt, pod, log, capsule, fleet, capacity, series or node; else of nothing."""
    return text.partition(".")[0] if "." in text else text.partition("-")[0]


def run_of(text: str) -> tuple[RunKey, str] | None:
    """The run, and the rest, of an id of an attempt, a Pod or a log; None if it is none of these."""
    parts = text.split(".", 3)
    if len(parts) < 3 or not _ATTEMPT.fullmatch(parts[2]):
        return None
    return RunKey(JobId(parts[1]), int(parts[2])), parts[3] if len(parts) > 3 else ""
