"""Which keys an object may have: those that can't leave the root of a directory and need no escaping in a log."""

from starforge.domain.errors import Defect

CHECK_KEY = "health/check"
"""An object that is written over and over, to see whether that works."""
_KEY_MAX_BYTES = 900  # S3 takes 1,024
_PART_MAX_BYTES = 200  # a file system takes 255, and temporary names are longer


def is_key(key: str) -> bool:
    """Whether `key` is made of visible, non-empty parts between slashes, none of which starts with a dot."""
    if len(key.encode("utf-8", "surrogatepass")) > _KEY_MAX_BYTES or "\\" in key or not key.isprintable():
        return False
    return all(_is_part(part) for part in key.split("/"))


def _is_part(part: str) -> bool:
    return bool(part) and not part.startswith(".") and len(part.encode()) <= _PART_MAX_BYTES


def check_key(key: str) -> str:
    """`key` itself; Defect if it is none, as keys are made by us."""
    if not is_key(key):
        raise Defect(f"{key!r} can't be the key of an object.")
    return key


__all__ = ["CHECK_KEY", "check_key", "is_key"]
