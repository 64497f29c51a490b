"""Launch orders and configurations for the tests of the kube room."""

from dataclasses import replace
from datetime import UTC, datetime

from starforge.adapters.kube.settings import KubeConfig, SubmissionMode
from starforge.domain.names import Digest, JobId, RunKey, run_name
from starforge.domain.ports import LaunchOrder, Signed
from starforge.domain.spec import Deadlines, EnvVar, JobSpec, PoolSpec, SecretKey

AT = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
RUN = RunKey(JobId("job-0123456789abcdef0123"), 1)
SHA256 = "ab" * 32
HTTPS = f"https://s3.example.com/starforge/capsules/{SHA256}.zip?X-Amz-Credential=key&X-Amz-Signature=secret"
CONFIG = KubeConfig(namespace="starforge", image="registry.example.com/nemo-rl:v1", nemo_rl_dir="/opt/nemo-rl")
SPEC = JobSpec(
    name="Überprüfung: RL, two pools",
    project="default",
    fleet="kuberay",
    description=None,
    image="registry.example.com/nemo-rl:v1",
    command=("python", "train.py"),
    env=(),
    pools=(
        PoolSpec("train", "h200", 1, 2, 4, "16Gi", "8Gi"),
        PoolSpec("rollout", "b200", 3, 1, 2, "8Gi", "4Gi", image="registry.example.com/vllm:v2"),
    ),
    deadlines=Deadlines(0, 1800, 7200),
    labels=(),
    priority=0,
    cancel_grace_seconds=30,
)


def signed(url: str, method: str = "GET", headers: tuple[tuple[str, str], ...] = ()) -> Signed:
    return Signed(method, url, headers, AT)


def order(spec: JobSpec = SPEC, *, url: str = HTTPS) -> LaunchOrder:
    claim = signed("https://s3.example.com/starforge/logs/claim?X-Amz-Signature=put", "PUT", (("If-None-Match", "*"),))
    return LaunchOrder(
        run=RUN,
        name=run_name(spec.name, RUN),
        spec=spec,
        capsule=signed(url),
        capsule_digest=Digest("c" * 64),
        transport_sha256=SHA256,
        claim=claim,
        claim_until=AT,
        nonce="f00d",
    )


HTTP = order(url=HTTPS.replace("https://", "http://"))
ENV = (
    EnvVar("HOME_OF", "$(HOME) and $$(HOME) and $HOME"),
    EnvVar("QUOTES", 'it\'s "quoted"\nand a second line'),
    EnvVar("TOKEN", secret=SecretKey("hub", "token")),
    EnvVar("PYTHONPATH", "/mine"),
    EnvVar("NVIDIA_VISIBLE_DEVICES", "all"),
    EnvVar("STARFORGE_ATTEMPT_FILE", "/mine"),
)
ONE_POOL = replace(SPEC, pools=SPEC.pools[:1])
CASES: dict[str, tuple[LaunchOrder, KubeConfig]] = {
    "two-pools-https": (order(), CONFIG),
    "http-init-container": (HTTP, CONFIG),
    "https-own-ca": (order(), replace(CONFIG, s3_ca_file="/etc/ca.crt")),
    "no-active-deadline": (order(replace(SPEC, deadlines=Deadlines(0, 1800, 0))), CONFIG),
    "primary-of-two": (order(replace(SPEC, pools=(replace(SPEC.pools[0], machines=2),))), CONFIG),
    "no-passthrough": (order(), replace(CONFIG, gpu_passthrough=False)),
    "storage": (order(), replace(CONFIG, storage_pvc="starforge-storage", corpus_pvc="starforge-corpus")),
    "storage-mount": (order(ONE_POOL), replace(CONFIG, storage_pvc="starforge-storage", storage_mount="/storage")),
    "environment": (order(replace(ONE_POOL, env=ENV)), CONFIG),
    "k8s-job-mode": (order(ONE_POOL), replace(CONFIG, submission_mode=SubmissionMode.K8S_JOB)),
}
