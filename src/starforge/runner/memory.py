"""How often the kernel has killed a process of this container because its memory limit was reached."""

from __future__ import annotations

from pathlib import Path

COUNTERS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
"""Of cgroup version 2 and 1; where there is neither, nothing is known."""


def oom_kills() -> int:
    for name in COUNTERS:
        try:
            lines = Path(name).read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        for line in lines:
            word, _, number = line.partition(" ")
            if word == "oom_kill":
                return int(number)
    return 0
