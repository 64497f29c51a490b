"""Messages of a job to the platform: within the user's lines, `::starforge:: {json}`."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from math import isfinite
from typing import cast

from starforge.domain.logs import LineMark
from starforge.domain.text_lines import TextLine

WIRE_MARK = "::starforge:: "
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_RAY_PREFIX = re.compile(r"\((?:.{0,400} )?pid=\d+(?:, ip=[^()]*)?\) *")
_METRICS_MAX = 256
_NAME_MAX = 200
_INTEGER_MAX = 2**63 - 1


class RefusedWhy(StrEnum):
    """Why a runner did not start the command."""

    CLAIMED = "claimed"
    UNCLAIMED = "unclaimed"
    CORRUPT = "corrupt"


@dataclass(frozen=True)
class Started:
    """The runner is about to start the command."""

    at: datetime


@dataclass(frozen=True)
class Exit:
    """The command ended with `code`; 128+n, and `signal` n, when a signal ended it. With `out_of_memory` the kernel had
    killed a process of its container, as the memory limit was reached, and the command failed."""

    code: int
    signal: int | None
    at: datetime
    out_of_memory: bool = False


@dataclass(frozen=True)
class Refused:
    """The runner did not start the command."""

    why: RefusedWhy
    message: str


@dataclass(frozen=True)
class ProgressSaid:
    """What the code reports about itself; metrics may be NaN or infinite. `at` is when it was printed."""

    step: int | None
    total: int | None
    metrics: tuple[tuple[str, float], ...]
    at: datetime | None = None


Message = Started | Exit | Refused | ProgressSaid
Trusts = Callable[[str], bool]
"""Whether a nonce is that of the attempt, of which only a hash is stored."""


def split_wire(line: TextLine, *, trusts: Trusts) -> tuple[TextLine | None, Message | None]:
    """The line that people see, if any is left, and the message in it, if it is a valid one."""
    start = line.text.rfind(WIRE_MARK + "{")
    if start < 0 or LineMark.CUT in line.marks:
        return line, None
    body = _ANSI.sub("", line.text[start + len(WIRE_MARK) :])
    message = read_message(body, trusts=trusts, at=line.at)
    if message is None:
        return line, None
    before = line.text[:start]
    plain = _ANSI.sub("", before)
    if not plain.strip() or _RAY_PREFIX.fullmatch(plain):
        return None, message
    return TextLine(before, line.at, line.marks), message


def read_message(body: str, *, trusts: Trusts, at: datetime | None) -> Message | None:
    """A message from its JSON, or None if it is not one: malformed, or the runner's without its nonce."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    kind = value.get("type")
    if kind == "progress":
        return _progress(value, at)
    nonce = value.get("nonce")
    if not isinstance(nonce, str) or not trusts(nonce):
        return None
    try:
        return _runner_message(kind, value)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _runner_message(kind: object, value: Mapping[str, object]) -> Message | None:
    if kind == "started":
        return Started(_time(value["at"]))
    if kind == "exit":
        code, signal = _integer(value["code"]), _optional_integer(value["signal"])
        return Exit(code, signal, _time(value["at"]), out_of_memory=value.get("oom") is True)
    if kind == "refused":
        return Refused(RefusedWhy(cast("str", value["why"])), str(value["message"]))
    return None


def _progress(value: Mapping[str, object], at: datetime | None) -> ProgressSaid | None:
    metrics = value.get("metrics") or {}
    if not isinstance(metrics, dict) or len(metrics) > _METRICS_MAX or not all(map(_is_name, metrics)):
        return None
    try:
        points = tuple((name, _number(number)) for name, number in metrics.items())
        return ProgressSaid(_optional_integer(value.get("step")), _optional_integer(value.get("total")), points, at)
    except (TypeError, ValueError, OverflowError):
        return None


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _NAME_MAX and name.isprintable()


def _optional_integer(value: object) -> int | None:
    return None if value is None else _integer(value)


def _integer(value: object) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    if not 0 <= value <= _INTEGER_MAX:
        raise ValueError
    return value


def _number(value: object) -> float:
    if isinstance(value, str) and value in {"NaN", "Infinity", "-Infinity"}:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError
    return float(value)


def _time(value: object) -> datetime:
    seconds = _number(value)
    if not isfinite(seconds) or not 0 <= seconds < 10**11:
        raise ValueError
    return datetime.fromtimestamp(seconds, UTC)
