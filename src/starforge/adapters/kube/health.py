"""How a cluster is: each part asked beside the others, with what can't be asked told as such."""

from collections.abc import Callable
from datetime import datetime

from starforge.adapters.kube.access import Asker, rights_finding
from starforge.adapters.kube.checks import Checks, Told
from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.settings import KubeConfig
from starforge.domain.beside import beside
from starforge.domain.health import Access, Finding, FleetProbe, HealthCheckKind, HealthStatus

REQUEST_S = 3.0
"""Longest to connect, and longest without an answer, of one request."""
WITHIN_S = 5.0
_RBAC = HealthCheckKind.RBAC
_REFUSED = "Kubernetes does not let our account in: its token is not good (any more), so it has no rights at all."
_LATE = f"No answer came within {WITHIN_S:g} seconds."


class KubeHealth:
    """Asks with connections of its own, so that nothing else that hangs holds it up."""

    def __init__(self, config: KubeConfig, now: Callable[[], datetime]) -> None:
        api = KubeApi(config, connect_s=REQUEST_S, answer_s=REQUEST_S)
        self._api = api
        self._checks = Checks(api, config, now)
        self._ask = Asker(api, config.namespace, now)
        self._claims = tuple(claim for claim in (config.storage_pvc, config.corpus_pvc) if claim)

    def __call__(self, asked: Access | None) -> FleetProbe:
        reached = self._checks.api()
        if reached.finding.status is not HealthStatus.OK:
            why = "Not checked, as the Kubernetes API can't be asked."
            rest = {kind: Finding(kind, HealthStatus.UNKNOWN, why) for kind in self._kinds()}
            if reached.is_refused:
                rest[_RBAC] = Finding(_RBAC, HealthStatus.DOWN, _REFUSED)
            return FleetProbe((reached.finding, *rest.values()), access=asked)
        return self._of_all(reached, asked)

    def close(self) -> None:
        self._api.close()

    def _kinds(self) -> list[HealthCheckKind]:
        kinds = [HealthCheckKind.RAYJOB_CRD, HealthCheckKind.OPERATOR, HealthCheckKind.RBAC]
        return [*kinds, HealthCheckKind.STORAGE] if self._claims else kinds

    def _of_all(self, reached: Told, asked: Access | None) -> FleetProbe:
        found: list[Access] = []
        calls: dict[HealthCheckKind, Callable[[], Told]] = {
            HealthCheckKind.RAYJOB_CRD: self._checks.definition,
            HealthCheckKind.OPERATOR: self._checks.operator,
            HealthCheckKind.RBAC: lambda: self._rights(asked, found),
            HealthCheckKind.STORAGE: lambda: self._checks.storage(self._claims),
        }
        told = beside({kind: calls[kind] for kind in self._kinds()}, within_s=WITHIN_S)
        late = {kind: Told(Finding(kind, HealthStatus.UNKNOWN, _LATE)) for kind in self._kinds()}
        by_kind = late | told
        return FleetProbe(
            findings=(reached.finding, *(each.finding for each in by_kind.values())),
            kubernetes_version=reached.version,
            operator_version=by_kind[HealthCheckKind.OPERATOR].version,
            rayjob_api_version=by_kind[HealthCheckKind.RAYJOB_CRD].version,
            access=found[0] if found else asked,
        )

    def _rights(self, asked: Access | None, found: list[Access]) -> Told:
        access = self._ask(asked)
        found.append(access)
        return Told(rights_finding(access))
