"""Every right that this room uses. deploy/rbac.yaml grants these and no others, which a test compares."""

from dataclasses import dataclass

_RAY, _CORE = "ray.io", ""
_OF_NAMESPACES = frozenset({"pods"})
"""What may be asked for of one namespace or of all."""


@dataclass(frozen=True)
class Right:
    """One verb on a resource, of the namespace of the jobs unless `cluster`. `name` is the only object it is for."""

    verb: str
    group: str
    resource: str
    name: str | None = None
    cluster: bool = False

    @property
    def told(self) -> str:
        """The resource as people write it, such as rayjobs.ray.io or pods/log."""
        everywhere = " of all namespaces" if self.cluster and self.resource in _OF_NAMESPACES else ""
        return f"{self.resource}.{self.group}" if self.group else f"{self.resource}{everywhere}"

    def asked(self, namespace: str) -> dict[str, str]:
        """`resourceAttributes` of a SelfSubjectAccessReview."""
        resource, _, subresource = self.resource.partition("/")
        asked = {"verb": self.verb, "group": self.group, "resource": resource}
        asked |= {"subresource": subresource} if subresource else {}
        asked |= {"name": self.name} if self.name else {}
        return asked if self.cluster else asked | {"namespace": namespace}


def _all(group: str, resource: str, verbs: str, *, name: str | None = None, cluster: bool = False) -> tuple[Right, ...]:
    return tuple(Right(verb, group, resource, name, cluster) for verb in verbs.split())


RIGHTS: tuple[Right, ...] = (
    *_all(_RAY, "rayjobs", "create delete get list watch"),
    *_all(_RAY, "rayclusters", "delete list watch"),
    *_all(_CORE, "pods", "delete list watch"),
    *_all(_CORE, "pods/log", "get"),
    *_all(_CORE, "events", "list watch"),
    *_all(_CORE, "secrets", "create delete list patch"),
    *_all(_CORE, "services", "list"),
    *_all(_CORE, "services/proxy", "create get"),
    *_all(_CORE, "persistentvolumeclaims", "get"),
    *_all(_CORE, "namespaces", "get"),
    *_all("batch", "jobs", "list watch"),
    *_all("kueue.x-k8s.io", "workloads", "list watch"),
    *_all(_CORE, "nodes", "list watch", cluster=True),
    *_all(_CORE, "pods", "list watch", cluster=True),
    *_all("apiextensions.k8s.io", "customresourcedefinitions", "get", name="rayjobs.ray.io", cluster=True),
)
"""Whoever lacks one can't do all that is needed."""
VITAL = frozenset({"create", "list", "watch"})
"""Verbs on rayjobs without which no job can run."""
