"""Creating the Pod of a playground, or finding the one that is there."""

from collections.abc import Callable
from datetime import datetime

from kubernetes.client.exceptions import ApiException

from starforge.adapters.kube.client import METADATA_ONLY, KubeApi
from starforge.adapters.kube.errors import asking, is_taken
from starforge.adapters.kube.labels import KubeObject, run_of, selector
from starforge.adapters.kube.paths import Paths
from starforge.adapters.kube.rendering.playground import render_playground
from starforge.adapters.kube.settings import KubeConfig
from starforge.domain.errors import FleetRefused
from starforge.domain.job import RunIdentity
from starforge.domain.ports import PlaygroundOrder
from starforge.domain.reason import ReasonCode, reason


class PlaygroundLauncher:
    """A Pod by its name: whoever is first creates it, and everybody else finds that one."""

    def __init__(self, api: KubeApi, config: KubeConfig, now: Callable[[], datetime]) -> None:
        self._api, self._config, self._now = api, config, now
        self._paths = Paths(config.namespace)

    def __call__(self, order: PlaygroundOrder) -> RunIdentity:
        with asking(f"start {order.name}", self._now):
            pod = self._create(order)
        metadata = pod["metadata"]
        return RunIdentity(metadata["name"], metadata["namespace"], metadata["uid"])

    def _create(self, order: PlaygroundOrder) -> KubeObject:
        try:
            return self._api.post(self._paths.pods, render_playground(order, self._config))
        except ApiException as error:
            if not is_taken(error):
                raise
            return self._find(order)

    def _find(self, order: PlaygroundOrder) -> KubeObject:
        """By a list, as the rights for this need no `get` on Pods."""
        found, _ = self._api.list(self._paths.pods, {"labelSelector": selector(order.run)}, accept=METADATA_ONLY)
        mine = next((pod for pod in found if pod["metadata"]["name"] == order.name and run_of(pod) == order.run), None)
        if mine is None:
            message = f"A Pod {order.name} is in namespace {self._config.namespace} already and is not StarForge's."
            raise FleetRefused(reason(ReasonCode.LAUNCH_FAILED, message, self._now(), advice="Remove or rename it."))
        return mine
