"""Removing a run and proving that it is gone; and everything of ours that there is."""

from collections.abc import Iterator
from dataclasses import dataclass

from kubernetes.client.exceptions import ApiException

from starforge.adapters.kube.client import METADATA_ONLY, KubeApi
from starforge.adapters.kube.errors import is_missing
from starforge.adapters.kube.labels import MANAGED, KubeObject, belongs_by_name, installation_of, run_of, selector
from starforge.adapters.kube.paths import Paths
from starforge.adapters.kube.views.times import created, deletion_requested
from starforge.domain.names import RunKey
from starforge.domain.reason import ObjectRef
from starforge.domain.teardown import Found, RemainingObject

# The command has had its own grace; this lets Ray's processes end, and the node's GPUs are free soon.
POD_GRACE_S = 2


@dataclass(frozen=True)
class _Kind:
    """`custom` ones are not served where their definition was removed, and all objects of it with it."""

    name: str
    path: str
    custom: bool = False


class Removal:
    """Everything of a run, by our labels, or by KubeRay's names for what it makes without them."""

    def __init__(self, api: KubeApi, namespace: str) -> None:
        self._api = api
        self._paths = paths = Paths(namespace)
        self._rayjobs = _Kind("RayJob", paths.rayjobs, custom=True)
        self._rayclusters = _Kind("RayCluster", paths.rayclusters, custom=True)
        self._pods, self._secrets = _Kind("Pod", paths.pods), _Kind("Secret", paths.secrets)
        self._labelled = (self._rayjobs, self._rayclusters, self._pods, self._secrets)
        self._named = (_Kind("Service", paths.services), _Kind("Job", paths.batch_jobs))

    def delete(self, run: RunKey) -> None:
        """The RayJob first, so that nothing makes anew what goes next."""
        for kind in (self._rayjobs, self._rayclusters, self._secrets):
            for found in self._of(kind, run):
                if not deletion_requested(found["metadata"]):
                    self._remove(kind, found, grace_s=None)
        for pod in self._of(self._pods, run):
            if not _goes_soon(pod):
                self._remove(self._pods, pod, grace_s=POD_GRACE_S)

    def remaining(self, run: RunKey) -> list[RemainingObject]:
        """What is there of the run; and the namespace, if that is on its way out with something that is held."""
        left = [_remaining(kind, found) for kind in self._labelled for found in self._of(kind, run)]
        for kind in self._named:
            left += [_remaining(kind, found) for found in self._list(kind) if belongs_by_name(run, found)]
        held = any(one.finalizers and one.deletion_requested_at for one in left)
        return [*left, *self._dying_namespace()] if held else left

    def ours(self, installation: str) -> list[Found]:
        """All of every run but what bears another installation's label; what has no such label is not claimed."""
        return [
            Found(run, _remaining(kind, found), created(found["metadata"]), claimed=whose is not None)
            for kind in self._labelled
            for found in self._list(kind, MANAGED)
            if (run := run_of(found)) and (whose := installation_of(found)) in (installation, None)
        ]

    def _of(self, kind: _Kind, run: RunKey) -> list[KubeObject]:
        return [found for found in self._list(kind, selector(run)) if run_of(found) == run]

    def _list(self, kind: _Kind, labels: str | None = None) -> list[KubeObject]:
        try:
            found, _ = self._api.list(kind.path, {"labelSelector": labels} if labels else None, accept=METADATA_ONLY)
        except ApiException as error:
            if kind.custom and is_missing(error):
                return []
            raise
        return found

    def _dying_namespace(self) -> Iterator[RemainingObject]:
        try:
            namespace = self._api.get(self._paths.itself)
        except ApiException as error:
            if error.status not in (403, 404):  # without the right to see it, what is held in it is named alone
                raise
        else:
            if deletion_requested(namespace["metadata"]):
                yield _remaining(_Kind("Namespace", self._paths.itself), namespace)

    def _remove(self, kind: _Kind, found: KubeObject, *, grace_s: int | None) -> None:
        try:
            self._api.delete(f"{kind.path}/{found['metadata']['name']}", grace_s=grace_s)
        except ApiException as error:
            if not is_missing(error):
                raise


def _goes_soon(pod: KubeObject) -> bool:
    grace = pod["metadata"].get("deletionGracePeriodSeconds")
    return "deletionTimestamp" in pod["metadata"] and grace is not None and grace <= POD_GRACE_S


def _remaining(kind: _Kind, found: KubeObject) -> RemainingObject:
    metadata = found["metadata"]
    ref = ObjectRef(kind.name, metadata["name"], metadata.get("namespace"), metadata["uid"])
    return RemainingObject(ref, deletion_requested(metadata), tuple(metadata.get("finalizers") or ()))
