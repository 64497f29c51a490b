"""The checks of a cluster, one request or two each."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kubernetes.client.exceptions import ApiException

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.errors import UNREACHABLE, short
from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.paths import Paths
from starforge.adapters.kube.served import API_VERSION, served_versions
from starforge.adapters.kube.settings import KubeConfig
from starforge.adapters.kube.views.times import parse_time
from starforge.domain.health import Finding, HealthCheckKind, HealthStatus

REVIEW_SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
RENEWED_WITHIN = timedelta(seconds=90)
"""A leader renews its lease every few seconds; clocks may differ by a minute."""
_INSTALL = "Install the KubeRay operator, 1.4 or newer."
_MISSING = "it is not there"
_DOWN, _DEGRADED, _UNKNOWN = HealthStatus.DOWN, HealthStatus.DEGRADED, HealthStatus.UNKNOWN


@dataclass(frozen=True)
class Told:
    """A finding, and the version of what was asked; `is_refused` if our token was."""

    finding: Finding
    version: str | None = None
    is_refused: bool = False


class Checks:
    def __init__(self, api: KubeApi, config: KubeConfig, now: Callable[[], datetime]) -> None:
        self._api, self._config, self._now = api, config, now
        self._paths = Paths(config.namespace)

    def api(self) -> Told:
        """Whether the API server is there and lets us in."""
        kind = HealthCheckKind.KUBERNETES_API
        began = time.monotonic()
        try:
            version = self._version()
            self._come_in()
            gone = self._namespace_gone()
        except UNREACHABLE as error:
            refused = isinstance(error, ApiException) and error.status == 401
            return Told(Finding(kind, _DOWN, f"The Kubernetes API {_why_not(error)}"), is_refused=refused)
        seconds = time.monotonic() - began
        if gone:
            return Told(Finding(kind, _DOWN, gone, seconds), version)
        return Told(Finding(kind, seconds=seconds), version)

    def _namespace_gone(self) -> str | None:
        """That there is no namespace to work in; lists of one that is missing are merely empty."""
        namespace = self._config.namespace
        found, why = self._maybe(self._paths.itself)
        if why == _MISSING:
            return f"There is no namespace {namespace}: create it, with the rights of deploy/rbac.yaml."
        if found and found["metadata"].get("deletionTimestamp"):
            return f"The namespace {namespace} is being deleted, with every job in it: create it again when it is gone."
        return None

    def _version(self) -> str | None:
        """Its version, which a cluster may keep to itself."""
        try:
            return str(self._api.get("/version").get("gitVersion") or "") or None
        except ApiException as error:
            if error.status == 403:
                return None
            raise

    def _come_in(self) -> None:
        """Ask who we are, which everybody may who is let in."""
        try:
            self._api.post(REVIEW_SELF, {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"})
        except ApiException as error:
            if error.status not in (403, 404):  # older than 1.28, or kept back: the rights tell the rest
                raise

    def definition(self) -> Told:
        """Whether RayJobs are served, in the version that we send."""
        kind = HealthCheckKind.RAYJOB_CRD
        began = time.monotonic()
        try:
            served = served_versions(self._api)
        except UNREACHABLE as error:
            return Told(Finding(kind, _UNKNOWN, f"What is installed can't be asked: {short(error)}"))
        seconds = time.monotonic() - began
        if API_VERSION in served:
            return Told(Finding(kind, seconds=seconds), API_VERSION)
        found = f"only as {', '.join(served)}" if served else "not at all"
        message = f"RayJobs of {API_VERSION} are needed, and installed {found}. {_INSTALL}"
        return Told(Finding(kind, _DOWN, message, seconds))

    def operator(self) -> Told:
        """Whether the operator acts: by the lease that its leader renews, or else by its Deployment."""
        kind, began = HealthCheckKind.OPERATOR, time.monotonic()
        namespace = self._config.operator_namespace
        lease, why = self._maybe(f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/ray-operator-leader")
        deployment, why_not = self._maybe(f"/apis/apps/v1/namespaces/{namespace}/deployments/kuberay-operator")
        seconds, version = time.monotonic() - began, _image_version(deployment)
        finding = self._by_lease(lease) or _by_deployment(deployment)
        if finding is None:
            unseen = f"The KubeRay operator in namespace {namespace} can't be seen ({why or why_not})"
            finding = Finding(kind, _UNKNOWN, f"{unseen}; deploy/health.yaml lets our account see it.")
        return Told(replace(finding, seconds=seconds), version)

    def _by_lease(self, lease: KubeObject | None) -> Finding | None:
        renewed = parse_time((lease or {}).get("spec", {}).get("renewTime"))
        if renewed is None:
            return None
        if self._now() - renewed <= RENEWED_WITHIN:
            return Finding(HealthCheckKind.OPERATOR)
        message = "The KubeRay operator has stopped to renew its lease, so no job starts or ends: start it again."
        return Finding(HealthCheckKind.OPERATOR, _DOWN, message, since=renewed)

    def storage(self, claims: Sequence[str]) -> Told:
        """Whether the claims that every Pod of a job mounts are bound; the worst of them."""
        found = [self._claim(name) for name in claims]
        order = (_DOWN, _DEGRADED, _UNKNOWN, HealthStatus.OK)
        return Told(min(found, key=lambda finding: order.index(finding.status)))

    def _claim(self, name: str) -> Finding:
        kind = HealthCheckKind.STORAGE
        claim, why = self._maybe(f"{self._paths.claims}/{name}")
        if why == _MISSING:
            message = f"The claim {name} is not in namespace {self._config.namespace}, so no Pod starts: create it."
            return Finding(kind, _DOWN, message)
        if claim is None:
            return Finding(kind, _UNKNOWN, f"The claim {name} can't be seen ({why}).")
        phase = (claim.get("status") or {}).get("phase")
        if phase == "Bound":
            return Finding(kind)
        if phase == "Pending":
            return Finding(kind, _DEGRADED, f"The claim {name} is Pending: no volume is bound, or it waits for a Pod.")
        return Finding(kind, _DOWN, f"The claim {name} is {phase}, so no Pod starts: restore its volume.")

    def _maybe(self, path: str) -> tuple[KubeObject | None, str | None]:
        """The object, or why it can't be had."""
        try:
            return self._api.get(path), None
        except ApiException as error:
            known = {403: "our account may not read it", 404: _MISSING}
            return None, known.get(error.status) or short(error)
        except UNREACHABLE as error:
            return None, short(error)


def _why_not(error: BaseException) -> str:
    if isinstance(error, ApiException) and error.status == 401:
        return f"does not let us in: {short(error)}. Give StarForge a token that is good."
    return f"can't be reached: {short(error)}. Check FORGE_K8S_API_SERVER and the cluster."


def _by_deployment(deployment: KubeObject | None) -> Finding | None:
    if deployment is None:
        return None
    if (deployment.get("status") or {}).get("availableReplicas"):
        return Finding(HealthCheckKind.OPERATOR)
    message = "The KubeRay operator's Deployment has no Pod that is available, so no job starts or ends: look at it."
    return Finding(HealthCheckKind.OPERATOR, _DOWN, message)


def _image_version(deployment: KubeObject | None) -> str | None:
    """The tag of the operator's image."""
    pod = ((deployment or {}).get("spec") or {}).get("template", {}).get("spec", {})
    images = [str(container.get("image") or "") for container in pod.get("containers") or ()]
    tags = [image.rpartition("/")[2].partition("@")[0].partition(":")[2] for image in images]
    return next((tag for tag in tags if tag), None)
