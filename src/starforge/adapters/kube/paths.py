"""Paths of the API server for the objects of one namespace."""

from dataclasses import dataclass

RAYJOB_CRD = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rayjobs.ray.io"


NODES = "/api/v1/nodes"
PODS_OF_THE_CLUSTER = "/api/v1/pods"


@dataclass(frozen=True)
class Paths:
    """Collections of one namespace; `<collection>/<name>` is an object of it."""

    namespace: str

    @property
    def rayjobs(self) -> str:
        return f"/apis/ray.io/v1/namespaces/{self.namespace}/rayjobs"

    @property
    def rayclusters(self) -> str:
        return f"/apis/ray.io/v1/namespaces/{self.namespace}/rayclusters"

    @property
    def batch_jobs(self) -> str:
        return f"/apis/batch/v1/namespaces/{self.namespace}/jobs"

    @property
    def workloads(self) -> str:
        """Kueue's."""
        return f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{self.namespace}/workloads"

    @property
    def pods(self) -> str:
        return f"{self._core}/pods"

    @property
    def secrets(self) -> str:
        return f"{self._core}/secrets"

    @property
    def services(self) -> str:
        return f"{self._core}/services"

    @property
    def claims(self) -> str:
        return f"{self._core}/persistentvolumeclaims"

    @property
    def events(self) -> str:
        return f"{self._core}/events"

    @property
    def itself(self) -> str:
        """The namespace as an object."""
        return self._core

    @property
    def _core(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}"

    def pod_log(self, pod: str) -> str:
        return f"{self.pods}/{pod}/log"

    def dashboard(self, ray_cluster: str, path: str) -> str:
        """A path of Ray's dashboard, by way of the API server."""
        return f"{self.services}/{ray_cluster}-head-svc:dashboard/proxy/{path}"
