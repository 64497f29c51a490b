"""Jobs as the table of faults sees them."""

import hashlib
from dataclasses import replace

from tests.e2e.faults.judging import Evidence, Log, Start, Step, computed

NO_CODES: frozenset[str] = frozenset()
UUID = "a" * 32


def a_start(lines: int) -> Start:
    """Code that printed so many lines, one a second, and came to its end at second 106."""
    return Start(UUID, 100.0, tuple(100.5 + number for number in range(lines)), 106.0)


def kept(rows: tuple[tuple[int, str], ...], archive: str = "COMPLETE") -> Log:
    """A log that is the same wherever it is read."""
    text = "".join(f"{line}\n" for _, line in rows)
    return Log(rows, rows, text, hashlib.sha256(text.encode()).hexdigest(), archive)


def a_log(lines: int) -> Log:
    return kept(tuple(enumerate(computed(a_start(lines), lines), start=1)))


def evidence() -> Evidence:
    """A job of 5 lines that succeeded."""
    steps = (Step(99, "RUNNING", NO_CODES), Step(107, "FINISHING", NO_CODES), Step(109, "SUCCEEDED", NO_CODES))
    return Evidence("job-1", "SUCCEEDED", "SUCCEEDED", None, None, 1, steps, (a_start(5),), a_log(5), (), 109.0)


def lost_head() -> Evidence:
    """The same, killed right after its start."""
    start = Start(UUID, 100.0)
    log = kept(tuple(enumerate(computed(start, 0)[:1], start=1)), "TRUNCATED")
    return replace(
        evidence(), state="FAILED", outcome="FAILED", code="HEAD_LOST", message="The head is gone.",
        starts=(start,), log=replace(log, gaps=("The head is gone.",)),
    )  # fmt: skip
