"""How many jobs wait in which queue."""

from collections import Counter
from collections.abc import Mapping, Sequence

from starforge.domain.ports import Store
from starforge.domain.queries import JobFilter, JobOrder, Window
from starforge.domain.reason import ReasonCode

COUNTED_MAX = 10_000
_PAGE = 1_000
QueueName = str | None
"""A queue of the cluster by its name, or None for ours."""


def queue_lengths(store: Store, names: Sequence[QueueName]) -> Mapping[QueueName, int]:
    """How many jobs wait in each of the queues, of the first 10,000 that wait in any."""
    counts: Counter[QueueName] = Counter(dict.fromkeys(names, 0))
    which, after = JobFilter(active=True, reasons=(ReasonCode.QUEUED,)), None
    while counts.total() < COUNTED_MAX:
        page = store.job_page(which, JobOrder(), Window(_PAGE, after=after))
        counts.update(row.spec.queue for _, row in page.rows)
        if not page.has_next:
            break
        after = page.rows[-1][0]
    return counts
