"""What waits to be written is bounded by its size, and nothing of it is lost."""

import threading
from datetime import UTC, datetime

from starforge.domain.capacity.nodes import Claim, NodesSeen, NodeView, Room
from starforge.domain.names import JobId, RunKey
from starforge.domain.observation import FleetHeard, LogSeen, RawLine, Seen
from starforge.workers.watch.backlog import Backlog, size_of

AT = datetime(2030, 1, 1, tzinfo=UTC)


def lines(number: int, size: int = 1000) -> LogSeen:
    return LogSeen(RunKey(JobId("job-1"), 1), "driver", (RawLine(b"x" * size, AT),), str(number))


def test_it_is_told_in_order_and_then_nothing() -> None:
    backlog = Backlog()
    some: list[Seen] = [lines(1), FleetHeard(AT), lines(2)]
    assert all(backlog.put(one, timeout_s=0) for one in some)
    assert [backlog.take(timeout_s=0) for _ in some] == some
    assert backlog.take(timeout_s=0) is None


def test_nodes_take_room_by_how_many_they_are_and_what_is_on_them() -> None:
    claim = Claim("a", "a", None, Room(gpus=1))
    node = NodeView("node-a", "h200", 8, Room(gpus=8), claims=(claim,) * 8)
    few, many = NodesSeen(AT, (node,), whole=True), NodesSeen(AT, (node,) * 1000, whole=True)
    assert size_of(many) > 500 * size_of(few)


def test_it_takes_no_more_than_it_has_room_for() -> None:
    backlog = Backlog(most_bytes=2 * size_of(lines(1)))
    assert [backlog.put(lines(number), timeout_s=0) for number in range(3)] == [True, True, False]
    assert backlog.take(timeout_s=0) == lines(0)
    assert backlog.put(lines(3), timeout_s=0)
    assert [backlog.take(timeout_s=0) for _ in range(3)] == [lines(1), lines(3), None]


def test_one_that_is_larger_than_all_room_goes_through() -> None:
    backlog = Backlog(most_bytes=10)
    assert backlog.put(lines(1, size=1_000_000), timeout_s=0)
    assert not backlog.put(lines(2), timeout_s=0)
    assert backlog.take(timeout_s=0) == lines(1, size=1_000_000)


def test_whoever_waits_for_room_is_let_in_as_soon_as_there_is() -> None:
    backlog, put = Backlog(most_bytes=10), threading.Event()

    def wait() -> None:
        if backlog.put(lines(2), timeout_s=60):
            put.set()

    assert backlog.put(lines(1), timeout_s=0)
    waiting = threading.Thread(target=wait)
    waiting.start()
    assert backlog.take(timeout_s=0) == lines(1)
    waiting.join(60)
    assert put.is_set()
    assert backlog.take(timeout_s=0) == lines(2)
