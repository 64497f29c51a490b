"""Creating a run, or finding the one that is there."""

from collections.abc import Callable
from datetime import datetime
from urllib.parse import urlsplit

from kubernetes.client.exceptions import ApiException

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.errors import asking, is_missing, is_taken
from starforge.adapters.kube.labels import KubeObject, run_of
from starforge.adapters.kube.paths import Paths
from starforge.adapters.kube.rendering.rayjob import render_rayjob
from starforge.adapters.kube.rendering.secret import owned_by, render_secret
from starforge.adapters.kube.served import ServedFields, serves_kueue
from starforge.adapters.kube.settings import KubeConfig
from starforge.adapters.kube.trust import ca_bundle
from starforge.domain.errors import FleetRefused
from starforge.domain.job import RunIdentity
from starforge.domain.ports import LaunchOrder
from starforge.domain.reason import ReasonCode, reason


class Launcher:
    """The Secret first, as Pods wait for it; then the RayJob; then the Secret is made to go with it."""

    def __init__(self, api: KubeApi, config: KubeConfig, now: Callable[[], datetime]) -> None:
        self._api, self._config, self._now = api, config, now
        self._paths = Paths(config.namespace)
        self._served = ServedFields(api, now)

    def __call__(self, order: LaunchOrder) -> RunIdentity:
        self._check_urls(order)
        with asking(f"start {order.name}", self._now):
            self._check_queue(order)
            rayjob = self._find(order) or self._create(order)
            self._own_secret(order, rayjob)
        metadata = rayjob["metadata"]
        return RunIdentity(metadata["name"], metadata["namespace"], metadata["uid"])

    def _check_urls(self, order: LaunchOrder) -> None:
        for signed in (order.capsule, order.claim):
            if urlsplit(signed.url).scheme not in ("https", "http"):
                message = f"Pods can't reach the object store of {order.name}: it is a directory of another machine."
                advice = "Set FORGE_S3_ENDPOINT to an object store that Pods reach."
                raise FleetRefused(reason(ReasonCode.LAUNCH_FAILED, message, self._now(), advice=advice))

    def _check_queue(self, order: LaunchOrder) -> None:
        """Without Kueue nobody would keep the run back until its turn."""
        if order.spec.queue and not serves_kueue(self._api):
            message = f"It is to wait in Kueue's queue {order.spec.queue}, and this cluster has no Kueue of 0.15 or up."
            advice = "Leave the queue out to wait in StarForge's own, or ask who runs the cluster."
            raise FleetRefused(reason(ReasonCode.INVALID_SPEC, message, self._now(), advice=advice))

    def _find(self, order: LaunchOrder) -> KubeObject | None:
        try:
            found = self._api.get(f"{self._paths.rayjobs}/{order.name}")
        except ApiException as error:
            if is_missing(error):
                return None
            raise
        if run_of(found) != order.run:
            message = f"A RayJob {order.name} is in namespace {self._config.namespace} already and is not StarForge's."
            raise FleetRefused(reason(ReasonCode.LAUNCH_FAILED, message, self._now(), advice="Remove or rename it."))
        return found

    def _create(self, order: LaunchOrder) -> KubeObject:
        rayjob = render_rayjob(order, self._config, served=self._served())
        self._put_secret(order)
        try:
            return self._api.post(self._paths.rayjobs, rayjob)
        except ApiException as error:
            found = self._find(order) if is_taken(error) else None
            if found is None:
                raise
            return found

    def _put_secret(self, order: LaunchOrder) -> None:
        """Replaces what an earlier try left: nothing has read it yet, and the rights for this need no `get`."""
        secret = render_secret(order, self._config, ca_bundle=ca_bundle(self._config.s3_ca_file))
        try:
            self._api.post(self._paths.secrets, secret)
        except ApiException as error:
            if not is_taken(error):
                raise
            self._api.delete(f"{self._paths.secrets}/{order.name}")
            self._api.post(self._paths.secrets, secret)

    def _own_secret(self, order: LaunchOrder, rayjob: KubeObject) -> None:
        path = f"{self._paths.secrets}/{order.name}"
        try:
            self._api.patch(path, owned_by(rayjob))
        except ApiException as error:
            if not is_missing(error):
                raise
            self._put_secret(order)
            self._api.patch(path, owned_by(rayjob))
