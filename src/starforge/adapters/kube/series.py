"""Which nodes a pool's machines go to: the one place that knows how a series is told by a node's label."""

from starforge.adapters.kube.labels import KubeObject


def node_selector(label: str, series: str) -> dict[str, str]:
    """`nodeSelector` of a Pod that is to run on a node of a series."""
    return {label: series}


def series_of(node: KubeObject, label: str) -> str | None:
    """The series whose `node_selector` a node answers to; None if there is none."""
    series: str | None = (node["metadata"].get("labels") or {}).get(label)
    return series or None
