"""In which versions RayJobs are served, and which optional fields they have: the API server silently drops others."""

from collections.abc import Callable
from datetime import datetime, timedelta

from kubernetes.client.exceptions import ApiException

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.paths import RAYJOB_CRD

API_VERSION = "ray.io/v1"
_FRESH = timedelta(minutes=10)


class ServedFields:
    """Names of the fields below `spec` of the served RayJob, asked for again every ten minutes."""

    def __init__(self, api: KubeApi, now: Callable[[], datetime]) -> None:
        self._api = api
        self._now = now
        self._known: tuple[datetime, frozenset[str]] | None = None

    def __call__(self) -> frozenset[str]:
        """Empty when the right to read the definition is missing: every field that is then left out is optional."""
        at = self._now()
        if self._known is None or at - self._known[0] > _FRESH:
            self._known = (at, self._ask())
        return self._known[1]

    def _ask(self) -> frozenset[str]:
        try:
            return _spec_fields(self._api.get(RAYJOB_CRD))
        except ApiException as error:
            if error.status == 403:
                return frozenset()
            raise


def served_versions(api: KubeApi) -> list[str]:
    """Group and version of each in which RayJobs are served, the preferred one first; asked of discovery, so without
    rights of our own, and small."""
    try:
        group = api.get("/apis/ray.io")
    except ApiException as error:
        if error.status == 404:
            return []
        raise
    names = [str(version["groupVersion"]) for version in group.get("versions") or ()]
    return [name for name in names if _has_rayjobs(api, name)]


def serves_kueue(api: KubeApi) -> bool:
    """Whether Kueue is installed; asked of discovery."""
    try:
        api.get("/apis/kueue.x-k8s.io/v1beta2")
    except ApiException as error:
        if error.status == 404:
            return False
        raise
    return True


def _has_rayjobs(api: KubeApi, version: str) -> bool:
    try:
        resources = api.get(f"/apis/{version}").get("resources") or ()
    except ApiException as error:
        if error.status == 404:
            return False
        raise
    return any(resource.get("name") == "rayjobs" for resource in resources)


def _spec_fields(definition: KubeObject) -> frozenset[str]:
    for version in definition["spec"]["versions"]:
        if version["name"] == "v1" and version["served"]:
            return frozenset(version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"])
    return frozenset()
