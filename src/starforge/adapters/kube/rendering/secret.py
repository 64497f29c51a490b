"""The Secret of an attempt: what its runner must know and nobody else may."""

import json

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.rendering import places
from starforge.adapters.kube.rendering.capsule import by_init_container
from starforge.adapters.kube.rendering.pods import annotations, labels
from starforge.adapters.kube.settings import KubeConfig
from starforge.domain.ports import LaunchOrder
from starforge.domain.spec_rules import MAX_GRACE_SECONDS


def render_secret(order: LaunchOrder, config: KubeConfig, *, ca_bundle: str | None) -> KubeObject:
    """The Secret to create; `ca_bundle` is PEM text: the public roots and the object store's own."""
    content = {places.ATTEMPT_KEY: attempt_file(order, with_ca=ca_bundle is not None)}
    if by_init_container(order, config):
        content[places.URL_KEY] = order.capsule.url
    if ca_bundle is not None:
        content[places.CA_KEY] = ca_bundle
    metadata = {
        "name": order.name,
        "namespace": config.namespace,
        "labels": labels(order),
        "annotations": annotations(order),
    }
    return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "stringData": content}


def attempt_file(order: LaunchOrder, *, with_ca: bool) -> str:
    """The JSON that the runner reads: who it is, how it claims the attempt, where its output goes."""
    claim = {
        "url": order.claim.url,
        "headers": dict(order.claim.headers),
        "ca_file": places.CA_FILE if with_ca else None,
    }
    content = {
        "nonce": order.nonce,
        "claim": claim,
        "capsule": order.capsule_digest,
        "claim_until": order.claim_until.timestamp() if order.claim_until else None,
        "stream": places.STREAM,
        # How long a command gets is the canceler's to say, and we remove the run when that is over.
        "cancel_grace_s": MAX_GRACE_SECONDS,
    }
    return json.dumps(content, sort_keys=True)


def owned_by(rayjob: KubeObject) -> KubeObject:
    """The patch that makes Kubernetes remove an object together with `rayjob`."""
    owner = {
        "apiVersion": rayjob["apiVersion"],
        "kind": rayjob["kind"],
        "name": rayjob["metadata"]["name"],
        "uid": rayjob["metadata"]["uid"],
    }
    return {"metadata": {"ownerReferences": [owner]}}
