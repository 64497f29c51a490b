"""Kubernetes quantities, as far as memory needs them."""

import re
from decimal import Decimal

_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(k|M|G|T|Ki|Mi|Gi|Ti)?")


def parse_bytes(text: str) -> int:
    """Bytes of a quantity such as 64Gi; ValueError if it is not one."""
    match = _QUANTITY.fullmatch(text)
    if not match:
        raise ValueError(f"{text!r} is not a quantity such as 64Gi")
    return int(Decimal(match[1]) * _UNITS[match[2] or ""])


def show_bytes(count: int) -> str:
    """A quantity of `count` bytes in the largest binary unit that loses nothing."""
    for unit in ("Ti", "Gi", "Mi", "Ki"):
        if count and count % _UNITS[unit] == 0:
            return f"{count // _UNITS[unit]}{unit}"
    return str(count)
