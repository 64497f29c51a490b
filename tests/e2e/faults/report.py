"""The table of docs/reliability.md: written by a run between two marks, read back to keep the rows of other runs."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

BEGIN, END = "<!-- faults -->", "<!-- end of faults -->"
TTL_BEGIN, TTL_END = "<!-- ttl -->", "<!-- end of ttl -->"
HEADINGS = (
    "fault", "when it struck", "jobs under way", "ended right", "lost", "doubled", "objects left", "logs whole",
    "seconds to the right reason", "seconds from end of code to released",
)  # fmt: skip
NOTHING = "–"


@dataclass(frozen=True)
class Row:
    """What came of one fault; `skipped` says why it was not tried."""

    fault: str
    when: str
    jobs: int = 0
    right: int = 0
    lost: int = 0
    doubled: int = 0
    left: int = 0
    whole: int = 0
    reason_s: tuple[float, ...] = ()
    released_s: tuple[float, ...] = ()
    problems: tuple[str, ...] = ()
    skipped: str | None = None

    @property
    def is_ok(self) -> bool:
        """Whether all is as promised; a fault that was not tried shows nothing."""
        counts = (self.right, self.whole, self.lost, self.doubled, self.left)
        kept = counts == (self.jobs, self.jobs, 0, 0, 0)
        return self.skipped is None and self.jobs > 0 and kept and not self.problems

    def cells(self) -> tuple[str, ...]:
        counts = (self.jobs, self.right, self.lost, self.doubled, self.left)
        whole = f"{self.whole} of {self.jobs}"
        return (self.fault, self.when, *map(str, counts), whole, spread(self.reason_s), spread(self.released_s))


def spread(seconds: Sequence[float]) -> str:
    """The median, and the most if there is more than one."""
    if not seconds:
        return NOTHING
    middle = f"{statistics.median(seconds):.1f}"
    return middle if len(seconds) == 1 else f"{middle} (at most {max(seconds):.1f})"


def line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def merged(page: str, rows: Sequence[Row], order: Sequence[str]) -> str:
    """The page with these rows in place of older ones of the same faults; faults that are no more are left out.

    ValueError if the page has no place for a table.
    """
    before, begin, rest = page.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(f"{END}\n")
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} … {END}")
    lines = {text.split("|")[1].strip(): text for text in rest.splitlines() if text.startswith("| ")}
    lines |= {row.fault: line(row.cells()) for row in rows if row.skipped is None}
    body = [lines[name] for name in order if name in lines]
    table = [line(HEADINGS), "|" + "---|" * len(HEADINGS), *body]
    return f"{before}{begin}{chr(10).join(table)}\n{end}{after}"


def with_ttl(page: str, ttl_s: float, seconds: float) -> str:
    """The page with what KubeRay's own TTL path takes. ValueError if the page has no place for it."""
    before, begin, rest = page.partition(f"{TTL_BEGIN}\n")
    _, end, after = rest.partition(f"{TTL_END}\n")
    if not begin or not end:
        raise ValueError(f"the page has no {TTL_BEGIN} … {TTL_END}")
    told = f"With a TTL of {ttl_s:.0f} s, the last Pod was gone {seconds:.1f} s after the end of the code."
    return f"{before}{begin}{told}\n{end}{after}"


def summary(rows: Sequence[Row]) -> str:
    """A line for a person."""
    tried = [row for row in rows if row.skipped is None]
    released = [seconds for row in tried for seconds in row.released_s]
    return (
        f"{len(tried)} faults, {sum(row.jobs for row in tried)} jobs, {sum(row.right for row in tried)} ended right, "
        f"{sum(row.lost for row in tried)} lost, {sum(row.doubled for row in tried)} doubled, "
        f"{sum(row.left for row in tried)} objects left, {sum(row.whole for row in tried)} logs whole; "
        f"released {spread(released)} s after the end of the code; {len(rows) - len(tried)} not tried"
    )
