"""The containers of a Pod as JSON, as ContainerViews."""

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.views.times import parse_time
from starforge.domain.observation import ContainerRole, ContainerState, ContainerView, Termination
from starforge.domain.redaction import redact_or_none


def containers(pod: KubeObject) -> tuple[ContainerView, ...]:
    """Init containers first, each in the order of the spec; one without a status yet is WAITING."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    states = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    by_name = {state["name"]: state for state in states}
    init = [(each, _init_role(each)) for each in spec.get("initContainers") or []]
    # Ray's container is the first one, always.
    main = [
        (each, ContainerRole.SIDECAR if index else ContainerRole.MAIN)
        for index, each in enumerate(spec.get("containers") or [])
    ]
    return tuple(_view(each, role, by_name.get(each["name"], {})) for each, role in [*init, *main])


def _init_role(container: KubeObject) -> ContainerRole:
    return ContainerRole.SIDECAR if container.get("restartPolicy") == "Always" else ContainerRole.INIT


def _view(container: KubeObject, role: ContainerRole, status: KubeObject) -> ContainerView:
    state = status.get("state") or {}
    waiting, running = state.get("waiting") or {}, state.get("running") or {}
    return ContainerView(
        name=container["name"],
        role=role,
        image=container.get("image") or status.get("image") or "",
        state=_state(state),
        ready=bool(status.get("ready")),
        restarts=int(status.get("restartCount") or 0),
        waiting_reason=redact_or_none(waiting.get("reason")),
        waiting_message=redact_or_none(waiting.get("message")),
        started_at=parse_time(running.get("startedAt") or (state.get("terminated") or {}).get("startedAt")),
        termination=_termination(state.get("terminated")),
        previous=_termination((status.get("lastState") or {}).get("terminated")),
    )


def _state(state: KubeObject) -> ContainerState:
    if "terminated" in state:
        return ContainerState.TERMINATED
    return ContainerState.RUNNING if "running" in state else ContainerState.WAITING


def _termination(ended: KubeObject | None) -> Termination | None:
    if not ended:
        return None
    return Termination(
        exit_code=int(ended.get("exitCode") or 0),
        signal=ended.get("signal") or None,
        reason=redact_or_none(ended.get("reason")),
        message=redact_or_none(ended.get("message")),
        started_at=parse_time(ended.get("startedAt")),
        finished_at=parse_time(ended.get("finishedAt")),
    )
