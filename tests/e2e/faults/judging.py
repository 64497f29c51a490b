"""What became of a job under a fault, held against what was promised. Pure: no clock, no network, no disk."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

IN_FLIGHT_S = 2.0
"""What code that was killed had printed in its last moments may still have been in a pipe, which died with it."""
PLATFORM = "starforge: "
"""How lines of the runner itself begin, for example that it can't claim the attempt yet."""
END_STATES = frozenset({"SUCCEEDED", "FAILED", "CANCELED"})


@dataclass(frozen=True)
class Ending:
    """An outcome that is right, with the codes one of which must say why; none for success, which needs no reason."""

    outcome: str
    codes: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"{self.outcome} ({', '.join(sorted(self.codes))})" if self.codes else self.outcome


def ended(outcome: str, *codes: str) -> Ending:
    return Ending(outcome, frozenset(codes))


SUCCEEDED = ended("SUCCEEDED")


@dataclass(frozen=True)
class Start:
    """One start of a job's code, as it noted it itself: its uuid, and when it began, printed each line and ended."""

    uuid: str
    began_at: float
    printed_at: tuple[float, ...] = ()
    ended_at: float | None = None


@dataclass(frozen=True)
class Step:
    """What the subscription told at a time: the state, and every code that says why it waits, ended or is not seen."""

    at: float
    state: str
    codes: frozenset[str]


@dataclass(frozen=True)
class Log:
    """The driver's log: followed live, read by a query after the end, and as the archive has it.

    `stored` is the text behind the download link, None if there is none; `archive` is the state of the archive, and
    `elsewhere` every gap of any log of the job.
    """

    live: tuple[tuple[int, str], ...] = ()
    read: tuple[tuple[int, str], ...] = ()
    stored: str | None = None
    sha256: str | None = None
    archive: str = "OPEN"
    gaps: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """All that is known of a job after its end, or once nobody waits any longer. Times are seconds since the epoch."""

    job: str
    state: str
    outcome: str | None
    code: str | None
    message: str | None
    attempts: int
    steps: tuple[Step, ...]
    starts: tuple[Start, ...]
    log: Log
    left: tuple[str, ...]
    released_at: float | None = None


@dataclass(frozen=True)
class Verdict:
    """`problems` has a sentence for each thing that is not as promised; the rest are the figures of the table."""

    job: str
    right: bool
    lost: bool
    doubled: bool
    left: int
    whole: bool
    reason_s: float | None
    released_s: float | None
    problems: tuple[str, ...]


def judge(
    evidence: Evidence, endings: Sequence[Ending], *, struck_at: float, shows: frozenset[str], may_miss: bool
) -> Verdict:
    """`shows` are the codes one of which must be told after the fault (none: nobody has to notice). With `may_miss`,
    lines may be missing if the archive says so, as a node that is gone takes them along."""
    over = evidence.state in END_STATES
    right = over and _as_wanted(evidence, endings)
    reason_s = told_after(evidence.steps, shows, struck_at)
    doubled = len(evidence.starts) > evidence.attempts
    log = log_problems(evidence, may_miss=may_miss)
    problems = [
        *([] if over else [f"it never ended: it is {evidence.state}, {evidence.code}: {evidence.message}"]),
        *([] if right or not over else [_otherwise(evidence, endings)]),
        *([] if reason_s is not None or not shows else [f"none of {', '.join(sorted(shows))} was ever told"]),
        *([f"{len(evidence.starts)} starts of {evidence.attempts} attempt(s)"] if doubled else []),
        *([f"left in the cluster: {', '.join(evidence.left)}"] if evidence.left else []),
        *log,
    ]
    return Verdict(
        evidence.job,
        right and (reason_s is not None or not shows),
        not over,
        doubled,
        len(evidence.left),
        not log,
        reason_s,
        _released_after(evidence),
        tuple(f"{evidence.job}: {problem}" for problem in problems),
    )


def _as_wanted(evidence: Evidence, endings: Sequence[Ending]) -> bool:
    ran = len(evidence.starts) > 0 or evidence.outcome != "SUCCEEDED"
    return ran and any(
        ending.outcome == evidence.outcome and (evidence.code in ending.codes or not ending.codes) for ending in endings
    )


def _otherwise(evidence: Evidence, endings: Sequence[Ending]) -> str:
    found = f"{evidence.outcome} ({evidence.code}: {evidence.message}), {len(evidence.starts)} starts"
    return f"it ended as {found}, not as {' or '.join(map(str, endings))}"


def told_after(steps: Sequence[Step], shows: frozenset[str], struck_at: float) -> float | None:
    """Seconds from the fault to the first step that tells one of these codes."""
    first = next((step.at for step in steps if step.at >= struck_at and not shows.isdisjoint(step.codes)), None)
    return None if first is None else first - struck_at


def _released_after(evidence: Evidence) -> float | None:
    ends = [start.ended_at for start in evidence.starts if start.ended_at is not None]
    return evidence.released_at - ends[0] if evidence.released_at is not None and len(ends) == 1 else None


def log_problems(evidence: Evidence, *, may_miss: bool) -> list[str]:
    """What is not right about a log, as sentences."""
    log = evidence.log
    problems = [
        *_numbering("followed live", log.live),
        *_numbering("read after the end", log.read),
        *([] if log.live == log.read else [f"{len(log.live)} lines were told live, {len(log.read)} are kept"]),
        *_archived(log),
    ]
    lines = [text for _, text in log.read if not text.startswith(PLATFORM)]
    if len(evidence.starts) == 1:
        problems += _compared(lines, evidence.starts[0], log, may_miss=may_miss)
    elif not evidence.starts and lines:
        problems.append(f"{len(lines)} lines of code that was never started: {lines[0]!r}")
    return problems


def _numbering(which: str, rows: Sequence[tuple[int, str]]) -> list[str]:
    numbers = [number for number, _ in rows]
    as_it_should = numbers == list(range(1, len(numbers) + 1))
    return [] if as_it_should else [f"numbers of the log {which} have holes or repeats"]


def _archived(log: Log) -> list[str]:
    if log.archive not in ("COMPLETE", "TRUNCATED"):
        return [f"the archive is {log.archive}"]
    if log.stored is None:
        return [f"{len(log.read)} lines and no object to download"] if log.read else []
    text = "".join(f"{line}\n" for _, line in log.read)
    same = log.stored == text and hashlib.sha256(log.stored.encode()).hexdigest() == log.sha256
    return [] if same else ["the object that is kept is not the log that is read, or not what its checksum says"]


def computed(start: Start, count: int) -> list[str]:
    """What scripts/e2e/code/lines prints with `count` numbered lines."""
    body = (f"{number} {hashlib.sha256(f'{start.uuid}/{number}'.encode()).hexdigest()[:24]}" for number in range(count))
    return [f"start {start.uuid}", *body, f"end {start.uuid} {count}"]


def _compared(lines: list[str], start: Start, log: Log, *, may_miss: bool) -> list[str]:
    whole = computed(start, len(start.printed_at))
    if start.ended_at is not None and (len(lines), _digest(lines)) == (len(whole), _digest(whole)):
        return [] if log.archive == "COMPLETE" else [f"the log is whole, its archive {log.archive}: {log.elsewhere}"]
    # What was printed last may not have been noted any more.
    further = computed(start, max(len(start.printed_at), len(lines))) if start.ended_at is None else whole
    if lines not in (whole[: len(lines)], further[: len(lines)]):
        return [_first_difference(lines, further)]
    missing = _certainly_printed(start) - len(lines)
    told = log.archive == "TRUNCATED" and bool(log.gaps)
    return [] if missing <= 0 or (may_miss and told) else [f"{missing} lines are missing at the end"]


def _digest(lines: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _first_difference(lines: Sequence[str], wanted: Sequence[str]) -> str:
    for number, (found, printed) in enumerate(zip(lines, wanted, strict=False), start=1):
        if found != printed:
            return f"line {number} is {found[:80]!r}, not {printed[:80]!r}"
    return f"{len(lines) - len(wanted)} lines more than were printed: {lines[len(wanted)][:80]!r}"


def _certainly_printed(start: Start) -> int:
    """Lines that were out of the pipe before the code was killed; all of code that came to its end."""
    if start.ended_at is not None:
        return len(start.printed_at) + 2
    last = start.printed_at[-1] if start.printed_at else start.began_at
    return sum(at <= last - IN_FLIGHT_S for at in (start.began_at, *start.printed_at))
