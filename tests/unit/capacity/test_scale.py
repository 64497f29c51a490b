"""A thousand nodes with ten thousand Pods: everything answers, also where thousands would have to end."""

from datetime import timedelta

from starforge.domain.capacity.fit import FitVerdict, fit
from starforge.domain.capacity.queueing import Waiting, decide
from starforge.domain.capacity.view import series_gpus
from starforge.domain.names import JobId
from tests.unit.capacity.grounds import AT, claim, fleet, machines, node

NODES, PODS = 1000, 10
SERIES = ("b200", "h200")


def _claims(number: int) -> list[int]:
    """GPUs of each Pod on a node: those of the first eight hold one each, and the others none."""
    return [1 if index < 8 - number % 2 else 0 for index in range(PODS)]


FULL = fleet(
    *(
        node(
            f"node-{n:04}",
            SERIES[n % 2],
            8,
            *(claim(n * PODS + k, gpus, job=f"job-{n * 2 + k % 2}") for k, gpus in enumerate(_claims(n))),
        )
        for n in range(NODES)
    )
)


def test_the_view_counts_them_all() -> None:
    b200, h200 = series_gpus(FULL.views)
    assert (b200.total, b200.used, b200.free) == (4000, 4000, 0)
    assert (h200.total, h200.used, h200.free, h200.largest_free) == (4000, 3500, 500, 1)


def test_all_that_hold_may_have_to_end() -> None:
    told = fit("home", [machines("train", "b200", 500, 8)], FULL, until=lambda _: None, at=AT)
    assert (told.verdict, len(told.must_end)) == (FitVerdict.LATER, 20)


def test_a_long_queue_of_many_kinds_has_its_turns() -> None:
    queue = [
        Waiting(
            JobId(f"job-w{n:03}"),
            f"job {n}",
            (machines("a", SERIES[n % 2], 1 + n % 7, 1 + n % 4), machines("b", SERIES[n % 2], 1 + n % 3, 1 + n % 8)),
            0,
            AT + timedelta(seconds=n),
        )
        for n in range(500)
    ]
    turns = decide(queue, reserved=[], nodes=FULL, fleet="home", until=lambda _: None, at=AT)
    assert [turn.position for turn in turns if not turn.admitted] == list(
        range(1, 501 - sum(t.admitted for t in turns))
    )
