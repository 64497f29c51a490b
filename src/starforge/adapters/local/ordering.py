"""From the order of the domain to the files of a run."""

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from starforge.adapters.local.node import machines, node_resources
from starforge.adapters.local.rundir import RunOrder
from starforge.domain.ports import LaunchOrder, Signed

LONGEST_GRACE_S = 3600


def run_order(
    order: LaunchOrder,
    *,
    uid: str,
    scratch: Path,
    fleet_gpus: Mapping[str, int],
    ca_file: str | None,
    created_at: float,
) -> RunOrder:
    spec = order.spec
    return RunOrder(
        uid=uid,
        job=order.run.job,
        attempt=order.run.attempt,
        name=order.name,
        capsule_url=order.capsule.url,
        capsule_headers=dict(order.capsule.headers),
        transport_sha256=order.transport_sha256,
        ca_file=ca_file,
        env={variable.name: variable.value or "" for variable in spec.env},
        node=node_resources(spec),
        machines=machines(spec),
        fleet_gpus=dict(fleet_gpus),
        grace_s=spec.cancel_grace_seconds,
        created_at=created_at,
        scratch=str(scratch),
    )


def attempt_file(order: LaunchOrder, *, stream: Path, ca_file: str | None) -> bytes:
    """What the runner reads."""
    attempt = {
        "nonce": order.nonce,
        "claim": _claim(order.claim, ca_file),
        "capsule": order.capsule_digest,
        "claim_until": order.claim_until.timestamp() if order.claim_until else None,
        "stream": str(stream),
        # The supervisor keeps the time, as a request to cancel may give another grace than the spec.
        "cancel_grace_s": LONGEST_GRACE_S,
    }
    return json.dumps(attempt).encode()


def _claim(claim: Signed, ca_file: str | None) -> dict[str, object]:
    url = urlsplit(claim.url)
    if url.scheme == "file":
        return {"path": unquote(url.path)}
    return {"url": claim.url, "headers": dict(claim.headers), "ca_file": ca_file}
