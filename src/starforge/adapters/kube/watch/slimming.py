"""Objects without what no view reads: of 10,000 Pods the rest is most, and all of it would be kept in memory."""

from sys import intern
from typing import Any

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.watch.messages import Kind

_METADATA = frozenset({"managedFields", "selfLink"})
_ANNOTATION = "kubectl.kubernetes.io/last-applied-configuration"
_SPEC = {
    Kind.RAYJOB: frozenset({"rayClusterSpec", "submitterPodTemplate", "runtimeEnvYAML", "entrypoint"}),
    Kind.RAYCLUSTER: frozenset({"headGroupSpec", "workerGroupSpecs", "autoscalerOptions"}),
    Kind.JOB: frozenset({"template"}),
    Kind.POD: frozenset({"affinity", "dnsConfig", "securityContext", "tolerations", "volumes"}),
    Kind.EVENT: frozenset[str](),
    Kind.WORKLOAD: frozenset({"podSets"}),
    Kind.NODE: frozenset[str](),
    Kind.CLAIM: frozenset[str](),
}
_CONTAINER = frozenset(
    {
        "args", "command", "env", "envFrom", "lifecycle", "livenessProbe", "readinessProbe", "securityContext",
        "startupProbe", "terminationMessagePath", "terminationMessagePolicy", "volumeMounts",
    }
)  # fmt: skip
_STATUS = frozenset({"hostIP", "hostIPs", "podIPs", "qosClass", "rayClusterStatus"})
_CONTAINER_STATUS = frozenset({"allocatedResources", "imageID", "resources", "user", "volumeMounts"})
# Longer texts are seldom the same in two objects.
_WORD = 24


def slimmed(kind: Kind, found: KubeObject) -> KubeObject:
    """What is left of an object as it came; it is taken apart for it."""
    metadata, spec, status = found["metadata"], found.get("spec") or {}, found.get("status") or {}
    _drop(metadata, _METADATA)
    (metadata.get("annotations") or {}).pop(_ANNOTATION, None)
    _drop(spec, _SPEC[kind])
    _drop(status, _STATUS)
    for containers in ("initContainers", "containers"):
        for container in spec.get(containers) or ():
            _drop(container, _CONTAINER)
    for containers in ("initContainerStatuses", "containerStatuses"):
        for container in status.get(containers) or ():
            _drop(container, _CONTAINER_STATUS)
    shared: KubeObject = _shared(found)
    return shared


def _drop(of: KubeObject, names: frozenset[str]) -> None:
    for name in names & of.keys():
        del of[name]


def _shared(value: Any) -> Any:
    """The same with one copy of each name and of each short word, of which every object has its own otherwise."""
    if isinstance(value, dict):
        return {intern(name): _shared(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_shared(each) for each in value]
    return intern(value) if isinstance(value, str) and len(value) < _WORD else value
