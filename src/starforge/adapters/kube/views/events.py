"""A Kubernetes Event as JSON, in the old style or the new one, as an EventSeen."""

from datetime import datetime

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.views.times import created, parse_time
from starforge.domain.names import RunKey
from starforge.domain.observation import EventSeen
from starforge.domain.reason import ObjectRef
from starforge.domain.redaction import redact

MESSAGE_MAX = 20_000


def count_of(event: KubeObject) -> int:
    """How often it happened: new-style Events count in a series and leave `count` empty."""
    series = event.get("series") or {}
    return int(series.get("count") or event.get("count") or 1)


def event_seen(run: RunKey, event: KubeObject) -> EventSeen:
    about = event.get("involvedObject") or {}
    first, last = _times(event)
    source = event.get("source") or {}
    return EventSeen(
        run=run,
        uid=event["metadata"]["uid"],
        object=ObjectRef(about.get("kind", ""), about.get("name", ""), about.get("namespace"), about.get("uid")),
        reason=redact(event.get("reason") or ""),
        warning=event.get("type") == "Warning",
        message=redact(event.get("message") or "")[:MESSAGE_MAX],
        count=count_of(event),
        first_at=first,
        last_at=last,
        reported_by=event.get("reportingComponent") or source.get("component") or None,
    )


def _times(event: KubeObject) -> tuple[datetime, datetime]:
    made = created(event["metadata"])
    happened = parse_time(event.get("eventTime"))
    first = parse_time(event.get("firstTimestamp")) or happened or made
    series = event.get("series") or {}
    last = parse_time(series.get("lastObservedTime")) or happened or parse_time(event.get("lastTimestamp")) or made
    return first, max(first, last)
