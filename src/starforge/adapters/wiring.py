"""The only place that names concrete adapters: settings in, ports out."""

import secrets
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from starforge.adapters.bus import CeleryNudge, News, RedisBus, Subscriber
from starforge.adapters.objects import DirectoryObjects, S3Connection, S3Objects
from starforge.adapters.packing.packer import CapsulePacker
from starforge.adapters.packing.runner_pex import runner_pex
from starforge.adapters.settings import Settings
from starforge.adapters.store import SqlStore, migrate
from starforge.domain.errors import Problem, SettingsWrong, StoreUnavailable
from starforge.domain.ports import Fleet, FleetKind, Identities, Nudge, ObjectStore, Ports, Publish, TokenStore
from starforge.domain.queries import FeedRow
from starforge.domain.queue import Queueing
from starforge.domain.rights import Role
from starforge.domain.spec import Deadlines, FleetDefaults


@dataclass(frozen=True)
class Parts:
    """What a process works with.

    `directory` is the object store if it is one that the gateway has to serve. `ping` asks Redis for a sign of life;
    RedisUnavailable if none comes.
    """

    settings: Settings
    ports: Ports
    hear: Callable[[], AsyncIterator[Sequence[FeedRow] | None]]
    close: Callable[[], None]
    ping: Callable[[], None]
    identities: Identities | None = None

    @property
    def directory(self) -> DirectoryObjects | None:
        objects = self.ports.objects
        return objects if isinstance(objects, DirectoryObjects) else None


def build(settings: Settings) -> Parts:
    """Connect everything that a process needs; migrations and buckets are `prepare`'s."""
    redis_url = _redis_url(settings)
    store = _store(settings)
    bus, nudge = RedisBus(redis_url), CeleryNudge(redis_url)
    ports = _ports(settings, store, nudge=nudge, publish=bus.publish)

    def close() -> None:
        nudge.close()
        bus.close()
        store.close()

    return Parts(settings, ports, lambda: _hear(redis_url), close, bus.ping, identities(settings))


@contextmanager
def ports_without_redis(settings: Settings) -> Iterator[Ports]:
    """Ports of a verb that is run beside the others, on a database that has the newest schema then.

    What it writes is found: gateways read the feed's table each second, and a tick sends commands.
    """
    prepare(settings)
    store = _store(settings)
    try:
        yield _ports(settings, store, nudge=lambda _: None, publish=lambda _: None)
    finally:
        store.close()


def _store(settings: Settings) -> SqlStore:
    store = SqlStore(settings.database)
    with suppress(StoreUnavailable), store.database.reading():
        pass  # so that the first thing that is done is done at the database's time already
    return store


def _ports(settings: Settings, store: SqlStore, *, nudge: Nudge, publish: Publish) -> Ports:
    return Ports(
        store=store,
        fleet=fleet(settings),
        objects=objects(settings),
        packer=CapsulePacker(settings.data_dir / "cache"),
        nudge=nudge,
        publish=publish,
        now=store.now,
        random=lambda: secrets.token_hex(16),
        scratch=_scratch,
        queueing=_queueing(settings),
    )


def _queueing(settings: Settings) -> Queueing:
    """The simulated fleet has a scheduler of its own to show."""
    simulated = settings.default_fleet_kind is FleetKind.SIMULATED
    return Queueing.OFF if simulated and settings.queue is Queueing.AUTO else settings.queue


def prepare(settings: Settings) -> None:
    """Bring the database to the newest schema; safe when several processes do it at once."""
    settings.data_dir.mkdir(parents=True, exist_ok=True)
    migrate(settings.database)


def warm(settings: Settings) -> None:
    """Build what packaging needs once, so that the first job does not wait for it."""
    runner_pex(settings.data_dir / "cache")


def now() -> datetime:
    return datetime.now(UTC)


def _redis_url(settings: Settings) -> str:
    if settings.redis_url is None:
        message = "FORGE_REDIS_URL is not set: name a Redis or Valkey, for example redis://localhost:6379/0."
        raise SettingsWrong([Problem("REQUIRED", ("FORGE_REDIS_URL",), message)])
    return settings.redis_url.get_secret_value()


async def _hear(redis_url: str) -> AsyncIterator[Sequence[FeedRow] | None]:
    """Rows of the feed as they are published; None when some may have been missed."""
    async with Subscriber(redis_url) as subscriber:
        async for heard in subscriber:
            yield heard.rows if isinstance(heard, News) else None


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="starforge-") as directory:
        yield Path(directory)


def objects(settings: Settings) -> ObjectStore:
    """The S3 server if one is set, else a directory of this machine."""
    if not (settings.s3_endpoint and settings.s3_access_key and settings.s3_secret_key):
        return DirectoryObjects(settings.objects, settings.address)
    connection = S3Connection(
        endpoint=settings.s3_endpoint,
        bucket=settings.s3_bucket,
        access_key=settings.s3_access_key.get_secret_value(),
        secret_key=settings.s3_secret_key.get_secret_value(),
        region=settings.s3_region,
        ca_file=settings.s3_ca_file,
    )
    return S3Objects(connection, pod_endpoint=settings.s3_pod_endpoint, url_max_s=settings.s3_url_max_s)


@contextmanager
def tokens(settings: Settings) -> Iterator[TokenStore]:
    """The tokens, in a database that is made or brought to the newest schema first."""
    if settings.database_url is None:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
    migrate(settings.database)
    store = SqlStore(settings.database)
    try:
        yield store
    finally:
        store.close()


def identities(settings: Settings) -> Identities | None:
    """The issuer of JWTs, if FORGE_OIDC_ISSUER names one."""
    if settings.oidc_issuer is None or settings.oidc_audience is None:
        return None
    from starforge.adapters.oidc import Issuer, OidcConfig

    return Issuer(
        OidcConfig(
            issuer=settings.oidc_issuer,
            audience=settings.oidc_audience,
            jwks_url=settings.oidc_jwks_url,
            ca_file=settings.oidc_ca_file,
            name_claim=settings.oidc_name_claim,
            role_claim=settings.oidc_role_claim,
            projects_claim=settings.oidc_projects_claim,
            roles=settings.oidc_roles or {role.value: role for role in Role},
        ),
        now=now,
    )


def fleet(settings: Settings) -> Fleet:
    """The fleet that FORGE_DEFAULT_FLEET_KIND names; its SDK is imported only if it is used."""
    if settings.default_fleet_kind is FleetKind.KUBERAY:
        return _kuberay(settings)
    if settings.default_fleet_kind is FleetKind.LOCAL:
        return _local(settings)
    return _simulated(settings)


def _kuberay(settings: Settings) -> Fleet:
    from starforge.adapters.kube.fleet import KubeFleet
    from starforge.adapters.kube.settings import KubeConfig, SubmissionMode

    return KubeFleet(
        KubeConfig(
            namespace=settings.k8s_namespace,
            fleet_name=settings.fleet,
            api_server=settings.k8s_api_server,
            token=settings.k8s_token.get_secret_value() if settings.k8s_token else None,
            token_file=_path(settings.k8s_token_file),
            ca_file=_path(settings.k8s_ca_file),
            gpu_node_label=settings.k8s_gpu_node_label,
            gpu_passthrough=settings.k8s_gpu_passthrough,
            logical_gpus=settings.k8s_logical_gpus,
            shm_size=settings.k8s_shm_size,
            storage_pvc=settings.k8s_storage_pvc,
            storage_shared=settings.k8s_storage_shared,
            storage_root=settings.storage_root,
            storage_mount=settings.k8s_storage_mount,
            corpus_pvc=settings.k8s_corpus_pvc,
            corpus_mount=settings.k8s_corpus_mount,
            image=settings.image_nemo_rl,
            nemo_rl_dir=settings.nemo_rl_dir,
            ray_version=settings.kuberay_ray_version,
            ttl_seconds=settings.kuberay_ttl_seconds,
            queue_deadline_s=settings.queue_deadline_s,
            active_deadline_s=settings.active_deadline_s,
            prerunning_deadline_s=settings.kuberay_prerunning_deadline_s,
            operator_namespace=settings.kuberay_operator_namespace,
            submission_mode=SubmissionMode(settings.kuberay_submission_mode.value),
            s3_ca_file=_path(settings.s3_ca_file),
            url_max_s=settings.s3_url_max_s,
            default_cpus=settings.default_cpus,
            default_memory=settings.default_memory,
            default_cancel_grace_s=settings.cancel_grace_s,
        )
    )


def _path(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _defaults(settings: Settings, *, logical_gpus: bool) -> FleetDefaults:
    """Defaults of a fleet that runs on this machine."""
    return FleetDefaults(
        fleet=settings.fleet,
        image=None,
        cpus=settings.default_cpus,
        memory=settings.default_memory,
        shm_size=settings.k8s_shm_size,
        deadlines=Deadlines(
            settings.queue_deadline_s, settings.kuberay_prerunning_deadline_s, settings.active_deadline_s
        ),
        cancel_grace_seconds=settings.cancel_grace_s,
        has_images=False,
        logical_gpus=logical_gpus,
    )


def _local(settings: Settings) -> Fleet:
    from starforge.adapters.local.capacity import real_gpus
    from starforge.adapters.local.fleet import LocalFleet

    return LocalFleet(
        settings.data_dir / "runs",
        gpus=settings.local_gpus or real_gpus(),
        defaults=_defaults(settings, logical_gpus=bool(settings.local_gpus)),
        ca_file=settings.s3_ca_file,
    )


def _simulated(settings: Settings) -> Fleet:
    from starforge.adapters.simulated.fleet import SimulatedFleet
    from starforge.adapters.simulated.world import World

    state = settings.data_dir / "simulated.db"
    state.parent.mkdir(parents=True, exist_ok=True)
    return SimulatedFleet(
        defaults=_defaults(settings, logical_gpus=True),
        state=state,
        clock=now,
        world=World(seed=settings.simulate_seed),
    )
