"""How the Capsule gets into Ray's working_dir: Ray fetches it itself, or an init container of every Ray Pod does."""

from enum import StrEnum
from urllib.parse import urlsplit

from starforge.domain.ports import Signed
from starforge.domain.spec import JobSpec

# Between signing and the start of the clocks, and for a Pod that starts just before a clock runs out.
SLACK_S = 900.0


class Route(StrEnum):
    RAY = "RAY"
    INIT_CONTAINER = "INIT_CONTAINER"


def lifetime_s(spec: JobSpec) -> float | None:
    """Longest life of a run in seconds, as its clocks limit it; None if one of them is off."""
    clocks = (spec.deadlines.queue_seconds, spec.deadlines.pre_running_seconds, spec.deadlines.active_seconds)
    return None if 0 in clocks[1:] else sum(clocks) + SLACK_S


def start_s(spec: JobSpec) -> float | None:
    """Longest time in seconds until the last Pod has started; None if nothing limits it."""
    if not spec.deadlines.pre_running_seconds:
        return None
    return spec.deadlines.queue_seconds + spec.deadlines.pre_running_seconds + SLACK_S


def outlived_by_signature(spec: JobSpec, url_max_s: float) -> bool:
    """Whether one signature lasts for the whole run, so that a node that comes late may still fetch with it."""
    needed = lifetime_s(spec)
    return needed is not None and needed <= url_max_s


def route(spec: JobSpec, capsule: Signed, url_max_s: float) -> Route:
    """Ray's own download for https URLs that outlive the run; it does not take http before Ray 2.56."""
    direct = urlsplit(capsule.url).scheme == "https" and outlived_by_signature(spec, url_max_s)
    return Route.RAY if direct else Route.INIT_CONTAINER


def signature_s(spec: JobSpec, url_max_s: float) -> float | None:
    """How long the Capsule's URL must be good; None for as long as the store signs."""
    needed = lifetime_s(spec) if outlived_by_signature(spec, url_max_s) else start_s(spec)
    return needed if needed is not None and needed <= url_max_s else None
