"""Which media type a client wants its answer in."""

from collections.abc import Mapping
from enum import StrEnum


class MediaType(StrEnum):
    """In the order of our preference where the client has none."""

    GRAPHQL = "application/graphql-response+json"
    JSON = "application/json"


HTML = "text/html"
EVENTS = "text/event-stream"
_WILDCARDS = ("application/*", "*/*")


def negotiate(accept: str | None) -> MediaType | None:
    """None if nothing we have is accepted. Nothing in particular (no header, a wildcard) gives `application/json`, as
    clients that old can't read the newer type."""
    wanted = _qualities(accept) if accept and accept.strip() else {"*/*": 1.0}
    wildcard = max((wanted.get(name, 0.0) for name in _WILDCARDS), default=0.0)
    chosen = max(MediaType, key=lambda media: wanted.get(media, 0.0))
    if wanted.get(chosen, 0.0) > 0:
        return chosen
    unnamed = [media for media in (MediaType.JSON, MediaType.GRAPHQL) if media not in wanted]
    return unnamed[0] if wildcard > 0 and unnamed else None


def prefers_page(accept: str | None) -> bool:
    """True for a browser that was given our address: it names HTML and ranks no type of ours above it."""
    wanted = _qualities(accept or "")
    return wanted.get(HTML, 0.0) > max(wanted.get(media, 0.0) for media in MediaType)


def wants_events(accept: str | None) -> bool:
    """True for a client of graphql-sse: it names event streams and ranks no type of ours above them."""
    wanted = _qualities(accept or "")
    return wanted.get(EVENTS, 0.0) > 0 and wanted[EVENTS] >= max(wanted.get(media, 0.0) for media in MediaType)


def _qualities(accept: str) -> Mapping[str, float]:
    qualities: dict[str, float] = {}
    for item in accept.lower().split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        qualities[name] = max(qualities.get(name, 0.0), _quality(parameters))
    return qualities


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
