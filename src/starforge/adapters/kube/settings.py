"""What the kube room needs to know about a cluster; settings.py of the adapters fills it from FORGE_*."""

from dataclasses import dataclass, field
from enum import StrEnum

from starforge.domain.spec import Deadlines

WEEK_S = 7 * 24 * 3600


class SubmissionMode(StrEnum):
    """How KubeRay hands the job to Ray: by HTTP from the operator, or by a submitter Pod."""

    HTTP = "HTTPMode"
    K8S_JOB = "K8sJobMode"


@dataclass(frozen=True)
class KubeConfig:
    """One cluster and one namespace of it.

    Connection: `api_server` with `token` or `token_file` (read again when it changes) and `ca_file`; else `kubeconfig`,
    a path; else the service account of the Pod that this runs in; else the user's own kubeconfig. Sizes are Kubernetes
    quantities, times seconds. `storage_mount` is where the claim goes if not at `storage_root`. `nemo_rl_dir` goes on
    the path of jobs that run the default image. `s3_ca_file` holds the object store's CA as PEM; `url_max_s` is the
    longest signature it makes.
    """

    namespace: str
    fleet_name: str = "kuberay"
    api_server: str | None = None
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    ca_file: str | None = None
    kubeconfig: str | None = None
    gpu_node_label: str = "starforge/gpu-series"
    gpu_passthrough: bool = True
    logical_gpus: int = 8
    shm_size: str = "64Gi"
    storage_pvc: str | None = None
    storage_shared: bool = True
    storage_root: str = "/starforge"
    storage_mount: str | None = None
    corpus_pvc: str | None = None
    corpus_mount: str = "/corpus"
    image: str | None = None
    nemo_rl_dir: str | None = None
    ray_version: str = "2.55.1"
    ttl_seconds: int = 600
    prerunning_deadline_s: int = 1800
    submission_mode: SubmissionMode = SubmissionMode.HTTP
    operator_namespace: str = "kuberay-system"
    s3_ca_file: str | None = None
    url_max_s: float = WEEK_S
    default_cpus: int = 1
    default_memory: str = "2Gi"
    default_cancel_grace_s: int = 30
    queue_deadline_s: int = 0
    active_deadline_s: int = 0

    @property
    def deadlines(self) -> Deadlines:
        return Deadlines(self.queue_deadline_s, self.prerunning_deadline_s, self.active_deadline_s)
