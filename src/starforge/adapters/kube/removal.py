"""Removing a run and proving that it is gone."""

from collections.abc import Iterator
from dataclasses import dataclass

from kubernetes.client.exceptions import ApiException

from starforge.adapters.kube.client import METADATA_ONLY, KubeApi
from starforge.adapters.kube.errors import is_missing
from starforge.adapters.kube.labels import KubeObject, belongs_by_name, run_of, selector
from starforge.adapters.kube.paths import Paths
from starforge.adapters.kube.views.times import deletion_requested
from starforge.domain.names import RunKey
from starforge.domain.reason import ObjectRef
from starforge.domain.teardown import RemainingObject

# The command has had its own grace; this lets Ray's processes end, and the node's GPUs are free soon.
POD_GRACE_S = 2


@dataclass(frozen=True)
class _Kind:
    name: str
    path: str
    labelled: bool


class Removal:
    """Everything of a run, by our labels, or by KubeRay's names for what it makes without them."""

    def __init__(self, api: KubeApi, namespace: str) -> None:
        self._api = api
        self._paths = Paths(namespace)

    def delete(self, run: RunKey) -> None:
        """The RayJob first, so that nothing makes anew what goes next."""
        paths = self._paths
        for path in (paths.rayjobs, paths.rayclusters, paths.secrets):
            for found in self._labelled(path, run):
                self._remove(path, found, grace_s=None)
        for pod in self._labelled(paths.pods, run):
            if not _goes_soon(pod):
                self._remove(paths.pods, pod, grace_s=POD_GRACE_S)

    def remaining(self, run: RunKey) -> list[RemainingObject]:
        return [_remaining(kind.name, found) for kind in self._kinds() for found in self._of(kind, run)]

    def _kinds(self) -> list[_Kind]:
        paths = self._paths
        return [
            _Kind("RayJob", paths.rayjobs, labelled=True),
            _Kind("RayCluster", paths.rayclusters, labelled=True),
            _Kind("Pod", paths.pods, labelled=True),
            _Kind("Secret", paths.secrets, labelled=True),
            _Kind("Service", paths.services, labelled=False),
            _Kind("Job", paths.batch_jobs, labelled=False),
        ]

    def _of(self, kind: _Kind, run: RunKey) -> Iterator[KubeObject]:
        if kind.labelled:
            yield from self._labelled(kind.path, run)
        else:
            everything, _ = self._api.list(kind.path, accept=METADATA_ONLY)
            yield from (found for found in everything if belongs_by_name(run, found))

    def _labelled(self, path: str, run: RunKey) -> list[KubeObject]:
        found, _ = self._api.list(path, {"labelSelector": selector(run)}, accept=METADATA_ONLY)
        return [each for each in found if run_of(each) == run]

    def _remove(self, path: str, found: KubeObject, *, grace_s: int | None) -> None:
        try:
            self._api.delete(f"{path}/{found['metadata']['name']}", grace_s=grace_s)
        except ApiException as error:
            if not is_missing(error):
                raise


def _goes_soon(pod: KubeObject) -> bool:
    grace = pod["metadata"].get("deletionGracePeriodSeconds")
    return "deletionTimestamp" in pod["metadata"] and grace is not None and grace <= POD_GRACE_S


def _remaining(kind: str, found: KubeObject) -> RemainingObject:
    metadata = found["metadata"]
    ref = ObjectRef(kind, metadata["name"], metadata.get("namespace"), metadata["uid"])
    return RemainingObject(ref, deletion_requested(metadata), tuple(metadata.get("finalizers") or ()))
