"""Finds the count of tokens in what a server answers."""

import json
import re
from dataclasses import dataclass

TAIL_MAX = 64 * 1024
_USAGE = re.compile(rb'"usage"\s*:\s*(?=\{)')
_MOST = 2**31


@dataclass(frozen=True)
class Tokens:
    prompt: int
    completion: int


def tokens_in(text: bytes) -> Tokens | None:
    """The last `usage` of JSON, or of events with JSON; None if there is none. `text` may begin anywhere.

    Within a text of the model, the quotes of such words are escaped.
    """
    found = None
    for found in _USAGE.finditer(text):  # noqa: B007
        pass
    if found is None:
        return None
    try:
        usage, _ = json.JSONDecoder().raw_decode(text[found.end() :].decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    return Tokens(_count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens")))


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST else 0
