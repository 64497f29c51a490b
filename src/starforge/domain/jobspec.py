"""A spec as canonical JSON: what a Capsule carries as jobspec.json, and what an idempotency key is compared with."""

import hashlib
import json
from dataclasses import asdict
from typing import Any

from starforge.domain.spec import JobSpec, SpecDraft


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no spaces, so that equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def jobspec(spec: JobSpec) -> bytes:
    """The authoritative spec of a Capsule: everything that is run, and no ids."""
    return canonical(_said(spec))


def body_sha256(draft: SpecDraft, code: Any) -> str:
    """What a submission says, for comparing it with an earlier one under the same idempotency key."""
    return hashlib.sha256(canonical([_said(draft), code])).hexdigest()


def _said(spec: JobSpec | SpecDraft) -> dict[str, Any]:
    """Its fields; one that came later is left out where it says nothing, so that the same is said as before."""
    fields = asdict(spec)
    return fields if fields["queue"] is not None else {name: fields[name] for name in fields if name != "queue"}
