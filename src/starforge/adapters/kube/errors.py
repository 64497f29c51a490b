"""What an answer of the API server means: no for good, somebody was first, or ask again later."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException
from urllib3.exceptions import HTTPError

from starforge.domain.denials import Denial, denial
from starforge.domain.errors import FleetRefused, FleetUnavailable, StarForgeError
from starforge.domain.reason import Evidence, EvidenceSource, Reason, ReasonCode, reason
from starforge.domain.redaction import redact

UNREACHABLE = (ApiException, HTTPError, ConfigException, OSError)
_TEXT_MAX = 2000
_RETRY_AFTER_MAX_S = 300.0


@dataclass(frozen=True)
class Answer:
    """A Status object of the API server, or what there was instead of it; `kind` is that of the object it is about."""

    status: int
    word: str
    message: str
    kind: str = ""
    retry_after_s: float | None = None


def answer_of(error: ApiException) -> Answer:
    """What the API server said, with secrets removed."""
    try:
        body = json.loads(error.body or "{}")
    except ValueError:
        body = {}
    body = body if isinstance(body, dict) else {}
    kind = (body.get("details") or {}).get("kind") or ""
    message = redact(str(body.get("message") or error.body or error.reason or ""))[:_TEXT_MAX]
    return Answer(error.status or 0, str(body.get("reason") or ""), message, kind, _retry_after(error))


def is_missing(error: ApiException) -> bool:
    return bool(error.status == 404)


def is_taken(error: ApiException) -> bool:
    """An object of that name is there already."""
    return bool(error.status == 409) and answer_of(error).word == "AlreadyExists"


@contextmanager
def asking(doing: str, now: Callable[[], datetime]) -> Iterator[None]:
    """Turns what goes wrong while `doing` into FleetRefused or FleetUnavailable; `doing` completes 'could not …'."""
    try:
        yield
    except UNREACHABLE as error:
        raise classified(error, doing=doing, at=now()) from error


def classified(error: BaseException, *, doing: str, at: datetime) -> StarForgeError:
    """FleetRefused for a no that stays a no, FleetUnavailable for all that may pass."""
    if not isinstance(error, ApiException) or not error.status:
        return FleetUnavailable(f"The Kubernetes API can't be reached, so StarForge could not {doing}: {short(error)}")
    answer = answer_of(error)
    shown = f"HTTP {answer.status} {answer.word}: {answer.message}"[:_TEXT_MAX]
    evidence = Evidence(EvidenceSource.API_RESPONSE, shown, at)
    found = None if answer.status in (429, 503) else denial(answer.message)
    code = _final(answer, found)
    if code is not None:
        message = f"Kubernetes will not {doing}: {answer.message}"
        return FleetRefused(reason(code, message, at, advice=_ADVICE.get(code), evidence=(evidence,)))
    message = f"The Kubernetes API answered {answer.status}, so StarForge could not {doing}: {answer.message}"
    held = _held(found, doing, evidence) if found else _not_let_in(answer, doing, evidence)
    return FleetUnavailable(message, retry_after_s=answer.retry_after_s, reason=held)


def _not_let_in(answer: Answer, doing: str, evidence: Evidence) -> Reason | None:
    """That our token is not good, which says nothing of what was asked for: it may be replaced in a moment."""
    if answer.status != 401:
        return None
    message = f"Kubernetes does not let StarForge in, so it can't {doing}: {answer.message}"
    code = ReasonCode.PERMISSION
    return reason(code, message, evidence.observed_at, advice=_ADVICE[code], evidence=(evidence,))


def _held(found: Denial, doing: str, evidence: Evidence) -> Reason:
    message = f"StarForge can't {doing}: {found.message}"
    return reason(found.code, message, evidence.observed_at, advice=found.advice, evidence=(evidence,))


def short(error: BaseException) -> str:
    """An error in one line, without secrets."""
    if isinstance(error, ApiException) and error.status:
        return " ".join(answer_of(error).message.split())[:300]
    text = str(error) or type(error).__name__
    return redact(" ".join(text.split()))[:300]


def _final(answer: Answer, found: Denial | None) -> ReasonCode | None:
    """The reason that a job gets; None if it is worth asking again."""
    if "being terminated" in answer.message and answer.status == 403:
        return ReasonCode.LAUNCH_FAILED
    if found:
        return None if found.patience_s is None else found.code
    if answer.status == 403:
        return ReasonCode.PERMISSION
    if answer.status in (400, 413, 422) or "request is too large" in answer.message:
        return ReasonCode.INVALID_SPEC
    if answer.status == 404:
        return ReasonCode.LAUNCH_FAILED if answer.kind == "namespaces" else ReasonCode.OPERATOR_ABSENT
    return None


_ADVICE = {
    ReasonCode.PERMISSION: "Give StarForge's account the rights of deploy/rbac.yaml, or a token that is still good.",
    ReasonCode.OPERATOR_ABSENT: "Install the KubeRay operator, version 1.4 or newer.",
    ReasonCode.ADMISSION_DENIED: "A policy of the cluster forbids it: change the spec, or ask who runs the cluster.",
    ReasonCode.INVALID_SPEC: "Change the spec as the message says and submit again.",
    ReasonCode.LAUNCH_FAILED: "Create the namespace that FORGE_K8S_NAMESPACE names.",
}


def _retry_after(error: ApiException) -> float | None:
    text = (error.headers or {}).get("Retry-After", "")
    return min(float(text), _RETRY_AFTER_MAX_S) if text.isdecimal() else None
