"""StarForge, seen from a job: tell the platform how far the training is.

This file is part of every Capsule as `starforge.py`, so `import starforge` works in the driver and in every actor.
"""

from __future__ import annotations

import json
import math
import sys
import threading
from typing import Any

__all__ = ["progress"]

_lock = threading.Lock()


def progress(step: int | None = None, total: int | None = None, **metrics: Any) -> None:
    """Report step `step` of `total`, in whatever unit the code counts, and numbers such as loss=0.1.

    Metrics may be anything that float() takes, NaN and infinity too. A metric that is no number raises TypeError.
    """
    message = {
        "type": "progress",
        "step": None if step is None else int(step),
        "total": None if total is None else int(total),
        "metrics": {name: _number(name, value) for name, value in metrics.items()},
    }
    line = "::starforge:: " + json.dumps(message, separators=(",", ":")) + "\n"
    with _lock:
        sys.stdout.write(line)
        sys.stdout.flush()


def _number(name: str, value: Any) -> float | str:
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"the metric {name!r} must be a number, not {type(value).__name__}") from error
    if math.isfinite(number):
        return number
    return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
