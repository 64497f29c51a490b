"""Spans of time as people write them."""

import re
from datetime import timedelta

from starforge.domain.errors import Problem, UserMistake

_UNITS = {
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
    "w": timedelta(weeks=1),
}
_SPAN = re.compile(r"([0-9]{1,6})([smhdw])")


def span(text: str, what: str, *, units: str) -> timedelta:
    """`90m` as a time; UserMistake, which begins with `what`, for anything else.

    `units` are the letters that it may have.
    """
    found = _SPAN.fullmatch(text)
    length = int(found[1]) * _UNITS[found[2]] if found and found[2] in units else timedelta()
    if not length:
        letters = f"{', '.join(units[:-1])} or {units[-1]}"
        message = f"{what} {text}: give a number and {letters}, for example 30{units[-2]}."
        raise UserMistake([Problem("INVALID", (what.removeprefix("--"),), message)])
    return length
