"""Writes numbered lines and notes each below MARKS, so that others know how often it was started and what it wrote.

What it writes is told by tests/e2e/faults/judging.py again. LINES is how many, PAUSE_S the seconds between two. With
FILL_MEMORY=1 it then takes more memory than the container may have, in a way that ends the whole container.
"""

import hashlib
import os
import time
import uuid
from contextlib import suppress
from pathlib import Path

MARKS, LINES, PAUSE_S = Path(os.environ["MARKS"]), int(os.environ["LINES"]), float(os.environ["PAUSE_S"])
START = uuid.uuid4().hex
BLOCK = 64 << 20


def line(number: int) -> str:
    return f"{number} {hashlib.sha256(f'{START}/{number}'.encode()).hexdigest()[:24]}"


def fill_memory() -> None:
    with suppress(OSError):  # the container's first process is the one to be killed, if that may be said
        Path("/proc/1/oom_score_adj").write_text("1000")
    held = []
    while True:
        held.append(bytearray(os.urandom(1 << 20)) * (BLOCK >> 20))


# The mark comes first: a start that got no further was one all the same.
(MARKS / f"start-{START}").write_text(f"{time.time():.3f}\n")
print(f"start {START}", flush=True)
with (MARKS / f"printed-{START}").open("a", buffering=1) as printed:
    for number in range(LINES):
        print(line(number), flush=True)
        printed.write(f"{number} {time.time():.3f}\n")
        time.sleep(PAUSE_S)
if os.environ.get("FILL_MEMORY") == "1":
    fill_memory()
print(f"end {START} {LINES}", flush=True)
(MARKS / f"end-{START}").write_text(f"{time.time():.3f}\n")
