"""What a Pod takes of its node, counted as the scheduler counts it (PodRequests of Kubernetes' component-helpers)."""

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.rendering.resources import GPU
from starforge.domain.capacity.nodes import Room

_CPU, _MEMORY = "cpu", "memory"
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([eE][+-]?[0-9]+)|([numkMGTPE]|[KMGTPE]i)?)")
_UNITS = {
    "": Decimal(1), "n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"),
    **{unit: Decimal(1000) ** power for power, unit in enumerate("kMGTPE", 1)},
    **{f"{unit}i": Decimal(1024) ** power for power, unit in enumerate("KMGTPE", 1)},
}  # fmt: skip
Amounts = dict[str, Decimal]


@lru_cache(4096)
def parse_quantity(text: str | float) -> Decimal:
    """A Kubernetes quantity, such as 500m, 2Gi or 1e3; ValueError if it is none."""
    match = _QUANTITY.fullmatch(str(text))
    if match is None:
        raise ValueError(f"{text!r} is not a quantity of Kubernetes")
    return Decimal(match[1] + (match[2] or "")) * _UNITS[match[3] or ""]


def room_of(amounts: KubeObject, *, pods: int) -> Room:
    """Resources as Kubernetes writes them, as a Room with that many Pods."""
    found = {name: parse_quantity(amounts[name]) for name in (GPU, _CPU, _MEMORY) if name in amounts}
    return _room(found, pods)


def requests(pod: KubeObject) -> Room:
    """What a Pod asks for: containers and sidecars together, or the largest step of its start if that is more."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    is_refused = _resize_is_refused(status)
    main = _sum(_running(each, status.get("containerStatuses"), is_refused) for each in spec.get("containers") or ())
    sidecars: Amounts = {}
    peak: Amounts = {}
    for each in spec.get("initContainers") or ():
        if each.get("restartPolicy") == "Always":
            sidecars = _sum([sidecars, _running(each, status.get("initContainerStatuses"), is_refused)])
            peak = _most(peak, sidecars)
        else:
            peak = _most(peak, _sum([sidecars, _wanted(each)]))
    total = _most(_sum([main, sidecars]), peak)
    of_pod = (spec.get("resources") or {}).get("requests") or {}
    total |= {name: parse_quantity(of_pod[name]) for name in (_CPU, _MEMORY) if name in of_pod}
    return _room(_sum([total, _amounts(spec.get("overhead") or {})]), 1)


def _resize_is_refused(status: KubeObject) -> bool:
    """Whether the node can never give what a Pod was resized to, so that it keeps what it has."""
    return any(
        (each["type"], each.get("reason")) == ("PodResizePending", "Infeasible")
        for each in status.get("conditions") or ()
    )


def _wanted(container: KubeObject) -> Amounts:
    wants = container.get("resources") or {}
    return _amounts((wants.get("limits") or {}) | (wants.get("requests") or {}))


def _running(container: KubeObject, statuses: Iterable[KubeObject] | None, is_refused: bool) -> Amounts:
    """While a container is resized, the larger of what is asked for and what it has counts."""
    status: KubeObject = next((each for each in statuses or () if each["name"] == container["name"]), {})
    given = _amounts((status.get("resources") or {}).get("requests") or {})
    has = _most(_amounts(status.get("allocatedResources") or {}), given)
    return has if is_refused and has else _most(_wanted(container), has)


def _amounts(found: KubeObject) -> Amounts:
    return {name: parse_quantity(found[name]) for name in (GPU, _CPU, _MEMORY) if name in found}


def _sum(some: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for each in some:
        for name, amount in each.items():
            total[name] = total.get(name, Decimal(0)) + amount
    return total


def _most(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, Decimal(0)), other.get(name, Decimal(0))) for name in one.keys() | other.keys()}


def _room(found: Amounts, pods: int) -> Room:
    cpu = math.ceil(found.get(_CPU, Decimal(0)) * 1000)
    return Room(int(found.get(GPU, 0)), cpu, math.ceil(found.get(_MEMORY, Decimal(0))), pods)
