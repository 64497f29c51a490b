"""What the runner is told: the attempt file, and the command in the Capsule's jobspec.json."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

ATTEMPT_FILE = "STARFORGE_ATTEMPT_FILE"
JOBSPEC = ".starforge/jobspec.json"


class AttemptInvalid(Exception):
    """The attempt file or the jobspec can't be read; `str()` says which and why."""


@dataclass(frozen=True)
class ClaimTarget:
    """Where the claim goes: a URL for a conditional PUT, or a path to create."""

    url: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    ca_file: str | None = None
    path: str | None = None


@dataclass(frozen=True)
class Attempt:
    """`claim_until` is epoch seconds, None for no end; `capsule` the sha256 that manifest.json must have, if told."""

    nonce: str
    claim: ClaimTarget
    claim_until: float | None
    stream: str | None
    cancel_grace_s: float
    capsule: str | None = None


def read_attempt() -> Attempt:
    """The attempt file named by the environment, which is then forgotten so that user code is not told."""
    path = os.environ.pop(ATTEMPT_FILE, None)
    if not path:
        raise AttemptInvalid(f"{ATTEMPT_FILE} is not set, so this run belongs to no attempt; submit a job")
    try:
        with open(path, encoding="utf-8") as file:
            return _attempt(json.load(file))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise AttemptInvalid(f"the attempt file {path} can't be used: {type(error).__name__}: {error}") from error


def read_command() -> list[str]:
    """`command` of jobspec.json."""
    try:
        with open(JOBSPEC, encoding="utf-8") as file:
            command = json.load(file)["command"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise AttemptInvalid(f"{JOBSPEC} can't be used: {type(error).__name__}: {error}") from error
    if not isinstance(command, list) or not command or not all(isinstance(word, str) for word in command):
        raise AttemptInvalid(f"{JOBSPEC}: command must be a list of strings with at least one")
    return command


def _attempt(value: Any) -> Attempt:
    until = value.get("claim_until")
    return Attempt(
        nonce=str(value["nonce"]),
        claim=_claim_target(value["claim"]),
        claim_until=None if until is None else float(until),
        stream=value.get("stream"),
        cancel_grace_s=float(value.get("cancel_grace_s", 30)),
        capsule=value.get("capsule"),
    )


def _claim_target(value: Any) -> ClaimTarget:
    if "path" in value:
        return ClaimTarget(path=str(value["path"]))
    url = str(value["url"])
    if not url.startswith(("http://", "https://")):
        raise ValueError("claim.url is no http or https URL")
    return ClaimTarget(url=url, headers=dict(value.get("headers") or {}), ca_file=value.get("ca_file"))
