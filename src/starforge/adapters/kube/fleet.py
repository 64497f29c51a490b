"""The fleet that is a Kubernetes cluster with KubeRay."""

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.errors import asking
from starforge.adapters.kube.health import KubeHealth
from starforge.adapters.kube.labels import KubeObject, run_of, selector
from starforge.adapters.kube.launching import Launcher
from starforge.adapters.kube.paths import Paths
from starforge.adapters.kube.removal import Removal
from starforge.adapters.kube.rendering.route import signature_s
from starforge.adapters.kube.settings import KubeConfig
from starforge.adapters.kube.stopping import stop_job
from starforge.adapters.kube.views.pods import assign_machines
from starforge.adapters.kube.views.runs import newest, run_seen
from starforge.adapters.kube.watch.nodeboard import NodeRules
from starforge.adapters.kube.watch.observer import Observer
from starforge.domain.health import Access, FleetProbe
from starforge.domain.job import RunIdentity
from starforge.domain.names import RunKey
from starforge.domain.observation import RunSeen, Seen
from starforge.domain.ports import FleetKind, LaunchOrder, Resume, StopAnswer
from starforge.domain.spec import FleetDefaults, JobSpec
from starforge.domain.teardown import Found, RemainingObject


def _now() -> datetime:
    return datetime.now(UTC)


class KubeFleet:
    """Implements the port `Fleet`: one RayJob per attempt, in one namespace."""

    kind = FleetKind.KUBERAY

    def __init__(self, config: KubeConfig, *, now: Callable[[], datetime] = _now) -> None:
        self.name = config.fleet_name
        self._config, self._now = config, now
        with asking("connect", now):
            self._api = KubeApi(config)
            self._health = KubeHealth(config, now)
        self._paths = Paths(config.namespace)
        self._launch = Launcher(self._api, config, now)
        self._removal = Removal(self._api, config.namespace)

    def defaults(self) -> FleetDefaults:
        config = self._config
        return FleetDefaults(
            fleet=config.fleet_name,
            image=config.image,
            cpus=config.default_cpus,
            memory=config.default_memory,
            shm_size=config.shm_size,
            deadlines=config.deadlines,
            cancel_grace_seconds=config.default_cancel_grace_s,
            storage_shared=config.storage_shared or not config.storage_pvc,
            logical_gpus=not config.gpu_passthrough,
            has_queues=True,
        )

    def signature_seconds(self, spec: JobSpec) -> float | None:
        return signature_s(spec, self._config.url_max_s)

    def launch(self, order: LaunchOrder) -> RunIdentity:
        return self._launch(order)

    def stop(self, run: RunKey, *, grace_s: int) -> StopAnswer:  # the runner keeps the grace
        rayjob = self.look(run).rayjob
        with asking(f"stop {run}", self._now):
            return stop_job(self._api, rayjob)

    def delete(self, run: RunKey) -> None:
        with asking(f"remove {run}", self._now):
            self._removal.delete(run)

    def remaining(self, run: RunKey) -> Sequence[RemainingObject]:
        with asking(f"see what is left of {run}", self._now):
            return self._removal.remaining(run)

    def ours(self, installation: str) -> Sequence[Found]:
        with asking("list what it has in the cluster", self._now):
            return self._removal.ours(installation)

    def look(self, run: RunKey) -> RunSeen:
        with asking(f"look at {run}", self._now):
            rayjob = newest(self._labelled(self._paths.rayjobs, run))
            raycluster = newest(self._labelled(self._paths.rayclusters, run))
            pods = self._labelled(self._paths.pods, run)
        return run_seen(run, rayjob, pods, assign_machines(pods, {}), self._now(), raycluster=raycluster)

    def health(self, asked: Access | None = None) -> FleetProbe:
        return self._health(asked)

    def watch(self, resume: Callable[[RunKey, str], Resume], stop: threading.Event) -> Iterator[Seen]:
        config = self._config
        logical = None if config.gpu_passthrough else config.logical_gpus
        rules = NodeRules(config.gpu_node_label, logical, config.namespace)
        return Observer(self._api, config.namespace, resume, self._now, rules).observe(stop)

    def close(self) -> None:
        """Lets go of the connections."""
        self._api.close()
        self._health.close()

    def _labelled(self, path: str, run: RunKey) -> list[KubeObject]:
        found, _ = self._api.list(path, {"labelSelector": selector(run)})
        return [each for each in found if run_of(each) == run]
