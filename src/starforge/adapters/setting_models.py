"""Every FORGE_* setting with its default, its meaning and an example."""

from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import Field
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from starforge.adapters import setting_types as types
from starforge.adapters.setting_problems import PREFIX
from starforge.domain.ports import FleetKind
from starforge.domain.queue import Queueing

SIGNATURE_MAX_S = 7 * 86400


class SubmissionMode(StrEnum):
    HTTP = "HTTPMode"
    K8S_JOB = "K8sJobMode"


def _setting(default: Any, description: str, example: object = None, **limits: Any) -> Any:
    return Field(default, description=description, examples=[default if example is None else example], **limits)


class FromMapping(BaseSettings):
    """Made from a mapping that is given, so that nothing reads the environment behind the caller's back."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="forbid", frozen=True, hide_input_in_errors=True)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


class ClientSettings(FromMapping):
    """What the client verbs of the command line need; all else is the server's."""

    url: types.HttpUrl = _setting("http://127.0.0.1:8000", "Gateway that the client verbs of the command line ask.")
    token: types.Token | None = _setting(None, "Bearer token of the client verbs.", "…")


class Settings(FromMapping):
    """What the processes need."""

    # fmt: off

    # The gateway
    host: str = _setting("127.0.0.1", "Address that the gateway listens on.", "0.0.0.0")  # noqa: S104
    port: int = _setting(8000, "Port that the gateway listens on.", ge=1, le=65535)
    shutdown_grace_s: int = _setting(
        35, "Seconds after SIGTERM until the gateway gives up what still runs, and ends.",
        ge=1, le=3600)
    public_url: types.HttpUrl | None = _setting(
        None, "Address of the gateway for its clients, in links that it gives out; host and port if it is not set.",
        "https://forge.example.com")
    web_url: types.HttpUrl | None = _setting(
        None, "Address of the dashboard, in the `webUrl` of jobs, which is null without it.",
        "https://forge.example.com/app")
    bootstrap_token: types.Token | None = _setting(
        None, "A bearer token with every right, to begin with. `starforge dev` on loopback needs none.", "…")

    # People of an issuer of OpenID Connect
    oidc_issuer: types.Issuer | None = _setting(
        None, "Issuer whose JWTs are taken as bearer tokens, exactly as their `iss` has it.", "https://login.example.com")
    oidc_audience: str | None = _setting(
        None, "What `aud` of those JWTs must name; needed with an issuer.", "starforge")
    oidc_jwks_url: types.HttpUrl | None = _setting(
        None, "Where the issuer publishes its keys; found by its discovery document if it is not set.",
        "https://login.example.com/keys")
    oidc_ca_file: types.ExistingFile | None = _setting(
        None, "CA certificates of the issuer; public roots if it is not set.", "/etc/starforge/issuer-ca.crt")
    oidc_name_claim: str = _setting("sub", "Claim with the name that others are shown.", "email", min_length=1)
    oidc_role_claim: str = _setting(
        "roles", "Claim with roles or groups, a text or a list; `a.b` is `b` within `a`.", "groups", min_length=1)
    oidc_roles: types.Roles | None = _setting(
        None, "What values of that claim stand for; the names of the roles themselves if it is not set.",
        "ml-admins=ADMIN,ml=SUBMITTER")
    oidc_projects_claim: str = _setting(
        "projects", "Claim with names of projects, a text or a list; an ADMIN needs none.", min_length=1)

    # Limits
    rate_limit_points: int = _setting(
        200_000, "Points that a caller may spend on documents at once; the schema's note on cost says what costs what.",
        ge=1, le=2**31 - 1)
    rate_limit_per_second: int = _setting(
        5_000, "Points that a caller gets back in a second.", ge=1, le=2**31 - 1)
    persisted_manifest: types.ExistingFile | None = _setting(
        None, "JSON file of documents by id, which clients then send as `documentId`; `starforge persist` writes it.",
        "/etc/starforge/documents.json")
    persisted_only: types.Switch = _setting(
        False, "Whether documents that are not in that file are refused, introspection too.", "true")

    # State
    data_dir: Path = _setting(Path(".starforge"), "Directory for what is kept on this machine.", "/var/lib/starforge")
    database_url: types.DatabaseUrl | None = _setting(
        None, "Postgres or SQLite; without it, a SQLite file in `FORGE_DATA_DIR`.",
        "postgresql://starforge:…@db.internal/starforge")
    redis_url: types.RedisUrl | None = _setting(
        None,
        "Redis or Valkey, for messages alone. `starforge dev` starts its own without it.",
        "redis://redis.internal:6379/0",
    )
    feed_retention_s: int = _setting(
        86400, "Seconds that a client may be away and still resume its subscription.", ge=60
    )

    # Jobs
    default_fleet_kind: types.Kind = _setting(
        FleetKind.KUBERAY, "Where jobs run: kuberay, local or simulated.", "kuberay"
    )
    queue: types.QueueMode = _setting(
        Queueing.AUTO,
        "Whether a job waits until all its pools fit: auto, on or off. With auto it does on kuberay, unless Kueue is "
        "installed, and on local.",
        "on",
    )
    fleet_name: types.DnsLabel | None = _setting(None, "Name of the fleet; its kind if it is not set.", "berlin")
    default_cpus: int = _setting(1, "CPUs of a machine whose pool names none.", ge=1)
    default_memory: types.Quantity = _setting("2Gi", "Memory of a machine whose pool names none.")
    queue_deadline_s: int = _setting(
        0, "Seconds that a job may wait in its queue, where its spec says nothing; 0 for any.", ge=0
    )
    active_deadline_s: int = _setting(0, "Seconds that a job may run, where its spec says nothing; 0 for any.", ge=0)
    cancel_grace_s: int = _setting(
        30, "Seconds between SIGTERM and SIGKILL of a canceled job, where its spec says nothing.", ge=0, le=3600)
    image_nemo_rl: str | None = _setting(
        None, "Image of jobs whose spec names none.", "registry.internal/starforge/nemo-rl:v0.7.0")
    nemo_rl_dir: types.PodPath | None = _setting(
        None, "Directory in that image that is put on the path of jobs that use it.", "/opt/nemo-rl")
    storage_root: types.PodPath = _setting("/starforge", "Where jobs find the storage claim.")

    # Kubernetes
    k8s_api_server: types.HttpUrl | None = _setting(
        None, "Address of the Kubernetes API; without it, the Pod's service account or the kubeconfig is used.",
        "https://10.0.0.1:6443")
    k8s_token: types.Token | None = _setting(None, "Token of the service account at that address.", "…")
    k8s_token_file: types.ExistingFile | None = _setting(
        None, "File with that token instead, read again when it changes.", "/run/secrets/starforge/token")
    k8s_ca_file: types.ExistingFile | None = _setting(
        None, "CA certificates of the Kubernetes API.", "/etc/starforge/cluster-ca.crt")
    k8s_namespace: types.DnsLabel = _setting("starforge", "Namespace of the jobs.")
    k8s_gpu_node_label: types.LabelKey = _setting(
        "starforge/gpu-series", "Label of the nodes that holds their GPU series, for placing and for capacity.")
    k8s_gpu_passthrough: types.Switch = _setting(
        True, "Whether Pods ask for `nvidia.com/gpu`. 0 for clusters without GPUs; Ray's logical GPUs stay.", 0)
    k8s_logical_gpus: int = _setting(
        8, "GPUs that each labelled node is taken to have where Pods ask for none.", ge=0, le=1024)
    k8s_shm_size: types.Quantity = _setting("64Gi", "Size of /dev/shm; half the machine's memory at most.")
    k8s_storage_pvc: types.ObjectName | None = _setting(
        None, "Claim that every Pod of a job mounts.", "starforge-storage"
    )
    k8s_storage_shared: types.Switch = _setting(
        True, "Whether several machines can mount that claim; if not, jobs of several machines are refused.",
        "false")
    k8s_storage_mount: types.PodPath | None = _setting(
        None, "Where that claim is mounted if it can't be at `FORGE_STORAGE_ROOT`.", "/storage")
    k8s_corpus_pvc: types.ObjectName | None = _setting(
        None, "Claim that every Pod of a job mounts read-only.", "starforge-corpus"
    )
    k8s_corpus_mount: types.PodPath = _setting("/corpus", "Where that claim is mounted.")
    kuberay_ray_version: str = _setting(
        "2.55.1", "Version of Ray in the images.", pattern=r"^[0-9]+\.[0-9]+\.[0-9]+\S*$"
    )
    kuberay_ttl_seconds: int = _setting(
        600, "Seconds until KubeRay itself removes an ended job, should we fail to.", ge=0
    )
    kuberay_prerunning_deadline_s: int = _setting(
        1800, "Seconds from launch to the start of a job, where its spec says nothing; 0 for any.", ge=0)
    kuberay_submission_mode: SubmissionMode = _setting(
        SubmissionMode.HTTP, "How KubeRay hands a job to Ray: HTTPMode, or K8sJobMode with one more Pod.", "HTTPMode")

    kuberay_operator_namespace: str = _setting(
        "kuberay-system", "Namespace of the KubeRay operator, whose lease and Deployment show whether it acts.")

    # The object store
    s3_endpoint: types.HttpUrl | None = _setting(
        None, "Address of the S3 server; the kuberay fleet needs one. Others use a directory without it.",
        "https://s3.internal")
    s3_bucket: types.BucketName = _setting("starforge", "Bucket; made if it is missing.")
    s3_access_key: types.Token | None = _setting(None, "Access key.", "…")
    s3_secret_key: types.Token | None = _setting(None, "Secret key.", "…")
    s3_region: str = _setting("us-east-1", "Region, which most S3 servers do not care about.")
    s3_ca_file: types.ExistingFile | None = _setting(
        None, "CA certificates of the S3 server, for us and for the Pods.", "/etc/starforge/s3-ca.crt")
    s3_pod_endpoint: types.HttpUrl | None = _setting(
        None, "Address of the S3 server for Pods, where it is another one.", "http://s3.storage.svc:9000")
    s3_url_max_s: int = _setting(
        SIGNATURE_MAX_S,
        "Most seconds that a signed URL may live; less where keys are short-lived.",
        ge=60,
        le=SIGNATURE_MAX_S,
    )
    objects_dir: Path | None = _setting(
        None, "Directory of the objects where there is no S3; `objects` in `FORGE_DATA_DIR` if it is not set.",
        "/var/lib/starforge/objects")

    # Other fleets
    local_gpus: types.Gpus | None = _setting(
        None,
        "GPUs that the local fleet has, logical ones; the real ones of this machine if it is not set.",
        "h200:8,b200:4",
    )
    simulate: int = _setting(0, "Jobs that the simulated fleet starts with.", 200, ge=0, le=10000)
    simulate_seed: int = _setting(1, "Seed of what the simulated fleet does.", ge=0)

    # fmt: on
    @property
    def fleet(self) -> str:
        """Name of the fleet."""
        return self.fleet_name or self.default_fleet_kind.lower()

    @property
    def address(self) -> str:
        """The gateway's address for its clients."""
        return self.public_url or f"http://{self.host}:{self.port}"

    @property
    def database(self) -> str:
        """URL of the database: a secret, as it may hold a password."""
        if self.database_url:
            return self.database_url.get_secret_value()
        return f"sqlite:///{self.data_dir.absolute() / 'starforge.db'}"

    @property
    def objects(self) -> Path:
        """Directory of the objects where there is no S3."""
        return self.objects_dir or self.data_dir / "objects"


__all__ = ["ClientSettings", "FromMapping", "Settings", "SubmissionMode"]
