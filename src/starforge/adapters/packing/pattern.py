"""What an ignore file says about one entry of a walk that has already decided about the folders above it."""

import re
from typing import cast

from pathspec import GitIgnoreSpec

_FOLDER_MARK = "ps_d"  # pathspec's group for the slash after a folder that a pattern matched


def verdict(spec: GitIgnoreSpec, path: str) -> bool | None:
    """True: ignored; False: taken by `!`; None: no pattern is about it. A folder's path ends in a slash.

    pathspec alone also answers for patterns that match a folder above, which lets `!*/` take every file; git asks
    about each entry on its own, and so does this.
    """
    for pattern in reversed(list(spec.patterns)):
        regex = cast("re.Pattern[str] | None", pattern.regex)
        if pattern.include is not None and regex is not None and _is_about(regex, path):
            return bool(pattern.include)
    return None


def _is_about(regex: re.Pattern[str], path: str) -> bool:
    """Whether the pattern is about the entry itself, rather than about something above it."""
    if _FOLDER_MARK not in regex.groupindex:
        # Not with the slash, as `name/**` is about what is in the folder and not about the folder.
        return regex.search(path.removesuffix("/")) is not None
    return any(found.end(_FOLDER_MARK) in {-1, len(path)} for found in regex.finditer(path))
