"""The environment of the Ray containers."""

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.rendering.places import ATTEMPT_DIR, ATTEMPT_KEY, CA_FILE
from starforge.adapters.kube.settings import KubeConfig
from starforge.domain.spec import EnvVar, JobSpec, PoolSpec
from starforge.domain.spec_rules import MAX_GRACE_SECONDS

# Ray kills what it stops after this; the runner enforces the job's own grace, so Ray's must be above any.
STOP_WAIT_S = MAX_GRACE_SECONDS + 300
# Ray gives up its start after 30 or 60 s, too early for a cold disk or a busy node; the job's clock bounds it.
START_S = 300
_PATIENCE = {
    "RAY_agent_register_timeout_ms": str(START_S * 1000),
    "RAY_DASHBOARD_STARTUP_TIMEOUT_S": str(START_S),
    "RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT": str(START_S),
}


def literal(text: str) -> str:
    """`text` so that Kubernetes hands it over as it is: it expands $(NAME) and reads $$ as one $."""
    return text.replace("$", "$$")


def environment(spec: JobSpec, pool: PoolSpec, config: KubeConfig, *, head: bool) -> list[KubeObject]:
    """Variables in the order in which they are defined; the platform's own win over the spec's."""
    entries: dict[str, KubeObject] = {"PYTHONUNBUFFERED": {"value": "1"}}
    entries |= {name: {"value": value} for name, value in _PATIENCE.items()}
    entries |= {variable.name: _entry(variable) for variable in spec.env}
    entries |= _python_path(spec, pool, config)
    entries |= {"RAY_DEDUP_LOGS": {"value": "0"}}
    if not asks_for_gpus(pool, config):
        entries |= {"NVIDIA_VISIBLE_DEVICES": {"value": "void"}}
    if config.s3_ca_file:
        entries |= {"REQUESTS_CA_BUNDLE": {"value": CA_FILE}, "SSL_CERT_FILE": {"value": CA_FILE}}
    if head:
        entries |= {"RAY_JOB_STOP_WAIT_TIME_S": {"value": str(STOP_WAIT_S)}}
        entries |= {"STARFORGE_ATTEMPT_FILE": {"value": f"{ATTEMPT_DIR}/{ATTEMPT_KEY}"}}
    return [{"name": name, **entry} for name, entry in entries.items()]


def asks_for_gpus(pool: PoolSpec, config: KubeConfig) -> bool:
    return config.gpu_passthrough and pool.gpus_per_machine > 0


def _entry(variable: EnvVar) -> KubeObject:
    if variable.secret is not None:
        return {"valueFrom": {"secretKeyRef": {"name": variable.secret.name, "key": variable.secret.key}}}
    return {"value": literal(variable.value or "")}


def _python_path(spec: JobSpec, pool: PoolSpec, config: KubeConfig) -> dict[str, KubeObject]:
    """PYTHONPATH for Pods with the default image; one that comes from a Secret is left alone: nobody can read it."""
    if not config.nemo_rl_dir or (pool.image or spec.image) != config.image:
        return {}
    own = next((variable for variable in spec.env if variable.name == "PYTHONPATH"), None)
    if own is not None and own.secret is not None:
        return {}
    parts = [part for part in (own and own.value, config.nemo_rl_dir) if part]
    return {"PYTHONPATH": {"value": literal(":".join(parts))}}
