"""Ids and names: what identifies a job here, and what it is called in a cluster."""

import hashlib
import re
from dataclasses import dataclass
from typing import NewType

JobId = NewType("JobId", str)
CommandId = NewType("CommandId", str)
PlaygroundId = NewType("PlaygroundId", str)
Digest = NewType("Digest", str)

RUN_NAME_MAX = 47  # KubeRay refuses longer RayJob names
_HASH_LENGTH = 10
_PROJECT = re.compile(r"[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")

LABEL_MANAGED = "starforge.io/managed"
LABEL_JOB = "starforge.io/job"
LABEL_ATTEMPT = "starforge.io/attempt"
LABEL_INSTALLATION = "starforge.io/installation"
LABEL_POOL = "starforge.io/pool"
LABEL_PLAYGROUND = "starforge.io/playground"
LABEL_PROJECT = "starforge.io/project"
ANNOTATION_NAME = "starforge.io/name"


@dataclass(frozen=True, order=True)
class RunKey:
    """One attempt of one job, as it is known to a fleet."""

    job: JobId
    attempt: int

    def __str__(self) -> str:
        return f"{self.job}/{self.attempt}"


def is_project(text: str) -> bool:
    """Whether a project can have this name."""
    return _PROJECT.fullmatch(text) is not None


def job_id(random: str) -> JobId:
    """A job's id from at least 20 random lower-case letters and digits; also a valid label value."""
    return JobId(f"job-{random[:20]}")


def installation_id(random: str) -> str:
    """An installation's id from at least 20 random lower-case letters and digits; also a valid label value."""
    return f"forge-{random[:20]}"


def slug(text: str, limit: int) -> str:
    """`text` as lower-case letters, digits and single dashes that starts with a letter, at most `limit` long."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    words = re.sub(r"^[^a-z]+", "", words)
    return words[:limit].rstrip("-") or "job"


def run_name(name: str, run: RunKey) -> str:
    """Name of the RayJob of an attempt: DNS-1035, at most 47 characters, the same for the same attempt."""
    tail = hashlib.sha256(str(run).encode()).hexdigest()[:_HASH_LENGTH]
    return f"{slug(name, RUN_NAME_MAX - _HASH_LENGTH - 1)}-{tail}"
