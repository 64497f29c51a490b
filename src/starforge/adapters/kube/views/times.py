"""Times as Kubernetes writes them."""

from datetime import UTC, datetime, timedelta

from starforge.adapters.kube.labels import KubeObject


def parse_time(text: str | None) -> datetime | None:
    """A time in RFC 3339 with any number of decimals, in UTC; None for none."""
    return datetime.fromisoformat(text).astimezone(UTC) if text else None


def created(metadata: KubeObject) -> datetime:
    return datetime.fromisoformat(metadata["creationTimestamp"]).astimezone(UTC)


def deletion_requested(metadata: KubeObject) -> datetime | None:
    """When removal was asked for: Kubernetes tells when it will be over."""
    due = parse_time(metadata.get("deletionTimestamp"))
    return due and due - timedelta(seconds=metadata.get("deletionGracePeriodSeconds") or 0)
