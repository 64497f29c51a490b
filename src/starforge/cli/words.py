"""Numbers, times and names as people read them."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from starforge.cli.answers import Json

STATE_STYLES = {
    "SUBMITTED": "cyan",
    "PACKAGING": "cyan",
    "LAUNCHING": "cyan",
    "PENDING": "yellow",
    "RUNNING": "bold blue",
    "FINISHING": "magenta",
    "SUCCEEDED": "bold green",
    "FAILED": "bold red",
    "CANCELED": "bold yellow",
}
_NON_FINITE = {"NAN": "NaN", "POSITIVE_INFINITY": "∞", "NEGATIVE_INFINITY": "-∞"}
WHOSE = {
    "USER": "your move",
    "PLATFORM": "a move of those who run StarForge",
    "CLUSTER": "a move of the cluster or those who run it",
}


def moment(text: str | None) -> datetime | None:
    """A DateTime of the API."""
    return datetime.fromisoformat(text) if text else None


def clock_time(text: str | None) -> str:
    """Time of day here, with the date unless it is today."""
    at = moment(text)
    if at is None:
        return ""
    here = at.astimezone()
    today = datetime.now(UTC).astimezone().date()
    return f"{here:%H:%M:%S}" if here.date() == today else f"{here:%Y-%m-%d %H:%M}"


def seconds_between(start: str | None, end: str | None, now: datetime) -> float | None:
    """From one DateTime to another, or to now if that is not yet; never below 0."""
    first = moment(start)
    return max(0.0, ((moment(end) or now) - first).total_seconds()) if first else None


def duration(seconds: float | None) -> str:
    """`41 s`, `12 min 5 s`, `3 h 20 min`, `2 d 4 h`."""
    if seconds is None:
        return ""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return _two(whole, 60, "min", 1, "s")
    return _two(whole, 3600, "h", 60, "min") if whole < 86400 else _two(whole, 86400, "d", 3600, "h")


def _two(whole: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = whole % large // small
    return f"{whole // large} {large_name}" + (f" {rest} {small_name}" if rest else "")


def size(count: float) -> str:
    """Bytes as `512 B`, `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def metric(value: Json) -> str:
    """One metric as `loss 0.1234`."""
    number = value["value"]
    if number is None:
        return f"{value['name']} {_NON_FINITE.get(value['nonFinite'] or '', '?')}"
    return f"{value['name']} {_number(number)}"


def _number(number: float) -> str:
    """With four decimals, or one where four would not tell more."""
    if number == int(number) or not 1e-3 <= abs(number) < 1e6:
        return f"{number:g}"
    return f"{number:.4f}" if abs(number) < 100 else f"{number:.1f}"


def metrics(values: Sequence[Json], most: int = 6) -> str:
    shown = "  ".join(metric(value) for value in values[:most])
    return f"{shown}  …" if len(values) > most else shown


def steps(progress: Json) -> str:
    """`12/20 60 %`, or what of it is known."""
    if progress["step"] is None:
        return ""
    if progress["total"] is None:
        return f"step {progress['step']}"
    share = f"  {progress['fraction']:.0%}" if progress["fraction"] is not None else ""
    return f"{progress['step']}/{progress['total']}{share}"


def clean(value: Any) -> Any:
    """JSON whose texts can do nothing to a terminal: control characters become escapes, line ends stay."""
    if isinstance(value, str):
        return value if value.isprintable() else "".join(_visible(char) for char in value)
    if isinstance(value, dict):
        return {key: clean(inner) for key, inner in value.items()}
    return [clean(inner) for inner in value] if isinstance(value, list) else value


def _visible(char: str) -> str:
    return char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode()


def words(name: str) -> str:
    """An enum's value as words: PRE_RUNNING as `pre running`."""
    return name.lower().replace("_", " ")
