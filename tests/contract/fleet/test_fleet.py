"""The contract of the Fleet port: what the rest of the platform relies on, whatever the fleet."""

from datetime import UTC, datetime, timedelta

import pytest

from starforge.domain.capacity.nodes import NodesSeen, NodeView
from starforge.domain.health import Access, HealthStatus
from starforge.domain.observation import ENDED_PHASES, FleetHeard, LogSeen, RunPhase, RunSeen, Seen
from starforge.domain.ports import LaunchOrder, StopAnswer
from starforge.domain.wire import Started
from tests.contract.fleet.plug import Code, FleetUnderTest, Reader, Watching, is_phase, undated

AT = datetime(2026, 1, 1, tzinfo=UTC)


def reader_of(order: LaunchOrder) -> Reader:
    return Reader(order.run, order.nonce)


def run_to_end(under_test: FleetUnderTest, order: LaunchOrder, reader: Reader) -> Watching:
    watching = Watching(under_test, [reader])
    under_test.fleet.launch(order)
    watching.until_phase(order.run, *ENDED_PHASES)
    if not reader.exits:
        watching.until("the exit line", lambda _: bool(reader.exits))
    return watching


def remove(under_test: FleetUnderTest, watching: Watching, order: LaunchOrder) -> None:
    under_test.fleet.delete(order.run)
    watching.until("that nothing is left", lambda _: not under_test.fleet.remaining(order.run))


def test_launch_is_idempotent(under_test: FleetUnderTest) -> None:
    order = under_test.order(Code.RUNS_ON)
    first = under_test.fleet.launch(order)
    assert under_test.fleet.launch(order) == first
    watching = Watching(under_test)
    watching.until_phase(order.run, RunPhase.RUNNING)
    assert under_test.fleet.launch(order) == first
    uids = {seen.uid for seen in watching.seen if isinstance(seen, RunSeen)}
    assert uids == {first.uid}
    remove(under_test, watching, order)


def test_runs_of_different_attempts_are_different(under_test: FleetUnderTest) -> None:
    orders = [under_test.order(Code.RUNS_ON), under_test.order(Code.RUNS_ON)]
    one, other = [under_test.fleet.launch(order) for order in orders]
    assert one.name != other.name
    watching = Watching(under_test)
    for order in orders:
        remove(under_test, watching, order)


def test_a_life_is_told_from_waiting_to_its_end(under_test: FleetUnderTest) -> None:
    order = under_test.order(Code.SUCCEEDS)
    watching = run_to_end(under_test, order, reader_of(order))
    assert watching.phases(order.run) == [RunPhase.WAITING, RunPhase.RUNNING, RunPhase.SUCCEEDED]
    remove(under_test, watching, order)


def test_the_runner_tells_of_start_and_exit_with_the_nonce(under_test: FleetUnderTest) -> None:
    order = under_test.order(Code.SUCCEEDS)
    reader = reader_of(order)
    watching = run_to_end(under_test, order, reader)
    assert sum(isinstance(message, Started) for message in reader.messages) == 1
    assert [(one.code, one.signal) for one in reader.exits] == [(0, None)]
    remove(under_test, watching, order)


def test_nobody_believes_another_nonce(under_test: FleetUnderTest) -> None:
    order = under_test.order(Code.SUCCEEDS)
    reader = reader_of(order)
    watching = run_to_end(under_test, order, reader)
    stranger = Reader(order.run, "another nonce")
    for seen in watching.seen:
        if isinstance(seen, LogSeen):
            stranger.take(seen)
    assert reader.exits
    assert not stranger.exits
    remove(under_test, watching, order)


def test_failing_code_ends_failed_with_its_exit_code(under_test: FleetUnderTest) -> None:
    order = under_test.order(Code.FAILS)
    reader = reader_of(order)
    watching = run_to_end(under_test, order, reader)
    assert watching.phases(order.run)[-1] is RunPhase.FAILED
    assert [one.code for one in reader.exits] == [3]
    remove(under_test, watching, order)


@pytest.mark.parametrize("cut_after", [1, 4])
def test_lines_come_exactly_once_though_the_watch_was_cut(under_test: FleetUnderTest, cut_after: int) -> None:
    order = under_test.order(Code.SUCCEEDS)
    pieces = reader_of(order)
    watching = Watching(under_test, [pieces])
    under_test.fleet.launch(order)
    watching.until("a few lines", lambda _: len(pieces.lines) >= cut_after)
    list(watching.rest())
    assert not pieces.exits
    watching = Watching(under_test, [pieces])
    watching.until("the exit line", lambda _: bool(pieces.exits))
    whole = reader_of(order)
    watching = Watching(under_test, [whole])
    watching.until("the exit line again", lambda _: bool(whole.exits))
    assert len(whole.lines) >= 10
    assert pieces.lines == whole.lines
    assert repr(pieces.messages) == repr(whole.messages)  # a NaN equals nothing, but reads the same
    remove(under_test, watching, order)


def test_a_closed_stream_is_not_told_again(under_test: FleetUnderTest) -> None:
    order = under_test.order(Code.SUCCEEDS)
    reader = reader_of(order)
    watching = run_to_end(under_test, order, reader)
    closed = {source for source, resume in reader.resumes.items() if resume.closed}
    again = Watching(under_test, [reader])
    again.until_phase(order.run, RunPhase.SUCCEEDED)
    remove(under_test, again, order)
    list(watching.rest())
    assert not [seen for seen in again.seen if isinstance(seen, LogSeen) and seen.source in closed]


def test_a_new_watch_tells_what_there_is(under_test: FleetUnderTest) -> None:
    order = under_test.order(Code.RUNS_ON)
    under_test.fleet.launch(order)
    Watching(under_test).until_phase(order.run, RunPhase.RUNNING)
    watching = Watching(under_test)
    watching.until("the run", lambda seen: isinstance(seen, RunSeen) and seen.run == order.run)
    assert watching.phases(order.run) == [RunPhase.RUNNING]
    remove(under_test, watching, order)


def test_stop_ends_the_command(under_test: FleetUnderTest) -> None:
    order = under_test.order(Code.RUNS_ON)
    reader = reader_of(order)
    watching = Watching(under_test, [reader])
    under_test.fleet.launch(order)
    watching.until_phase(order.run, RunPhase.RUNNING)
    assert under_test.fleet.stop(order.run, grace_s=5) is StopAnswer.ASKED
    assert under_test.fleet.stop(order.run, grace_s=5) in StopAnswer
    watching.until_phase(order.run, RunPhase.STOPPED)
    assert watching.phases(order.run)[-2:] == [RunPhase.RUNNING, RunPhase.STOPPED]
    remove(under_test, watching, order)


def test_nobody_can_be_asked_to_stop_what_is_not_there(under_test: FleetUnderTest) -> None:
    run = under_test.order(Code.RUNS_ON).run
    assert under_test.fleet.stop(run, grace_s=5) is StopAnswer.NOBODY_TO_ASK


def test_delete_removes_everything_and_can_be_repeated(under_test: FleetUnderTest) -> None:
    order = under_test.order(Code.RUNS_ON)
    assert not under_test.fleet.remaining(order.run)
    under_test.fleet.delete(order.run)
    under_test.fleet.launch(order)
    watching = Watching(under_test)
    watching.until_phase(order.run, RunPhase.RUNNING)
    assert under_test.fleet.remaining(order.run)
    remove(under_test, watching, order)
    under_test.fleet.delete(order.run)
    assert not under_test.fleet.remaining(order.run)
    assert under_test.fleet.look(order.run).phase is RunPhase.ABSENT


def test_ours_is_what_is_there_from_launch_to_the_last_that_goes(under_test: FleetUnderTest) -> None:
    orders = [under_test.order(Code.RUNS_ON), under_test.order(Code.RUNS_ON)]
    fleet = under_test.fleet
    assert list(fleet.ours("forge-us")) == []
    watching = Watching(under_test)
    for order in orders:
        fleet.launch(order)
    there = fleet.ours("forge-us")
    assert {one.run for one in there} == {order.run for order in orders}
    assert not any(one.terminating for one in there)
    begun = watching.seen[0]
    assert isinstance(begun, FleetHeard)
    assert all(begun.at - timedelta(minutes=5) < one.created_at for one in there)
    first, second = orders
    fleet.delete(first.run)
    assert all(one.terminating == (one.run == first.run) for one in fleet.ours("forge-us"))
    watching.until("that nothing is left", lambda _: not fleet.remaining(first.run))
    assert {one.run for one in fleet.ours("forge-us")} == {second.run}
    remove(under_test, watching, second)
    assert list(fleet.ours("forge-us")) == []


def test_a_run_can_be_deleted_before_it_runs(under_test: FleetUnderTest) -> None:
    order = under_test.order(Code.RUNS_ON)
    under_test.fleet.launch(order)
    watching = Watching(under_test)
    remove(under_test, watching, order)
    assert under_test.fleet.look(order.run).pods == ()


def test_absent_is_told_only_when_nothing_is_left(under_test: FleetUnderTest) -> None:
    order = under_test.order(Code.SUCCEEDS)
    watching = run_to_end(under_test, order, reader_of(order))
    assert RunPhase.ABSENT not in watching.phases(order.run)
    under_test.fleet.delete(order.run)
    watching.until(
        "that it is absent",
        lambda seen: is_phase(seen, order.run, RunPhase.ABSENT) and isinstance(seen, RunSeen) and not seen.pods,
    )
    assert not under_test.fleet.remaining(order.run)


def test_a_look_shows_what_the_watch_told(under_test: FleetUnderTest) -> None:
    order = under_test.order(Code.RUNS_ON)
    watching = Watching(under_test)
    under_test.fleet.launch(order)
    newest = watching.until_phase(order.run, RunPhase.RUNNING)

    def told_and_looked_alike(_: object) -> bool:
        told = [seen for seen in watching.seen if isinstance(seen, RunSeen) and seen.run == order.run]
        return undated(told[-1]) == undated(under_test.fleet.look(order.run))

    watching.until("the same picture", told_and_looked_alike)
    assert newest.pods
    remove(under_test, watching, order)


def test_a_run_that_never_was_is_absent(under_test: FleetUnderTest) -> None:
    seen = under_test.fleet.look(under_test.order(Code.RUNS_ON).run)
    assert (seen.phase, seen.pods) == (RunPhase.ABSENT, ())


def test_an_idle_fleet_is_heard_again_and_again(under_test: FleetUnderTest) -> None:
    watching = Watching(under_test)
    for _ in range(3):
        watching.until("that the fleet is there", lambda seen: isinstance(seen, FleetHeard) and seen.problem is None)
    heard = [seen.at for seen in watching.seen if isinstance(seen, FleetHeard)]
    assert heard == sorted(heard)
    nodes = [seen for seen in watching.seen if isinstance(seen, NodesSeen)]
    assert [seen.whole for seen in nodes] == [True]
    assert len(heard) + len(nodes) == len(watching.seen)


def test_what_a_run_holds_is_told_with_its_node_until_it_is_gone(under_test: FleetUnderTest) -> None:
    watching, nodes, order = Watching(under_test), dict[str, NodeView](), under_test.order(Code.RUNS_ON)

    def holds(seen: Seen) -> bool:
        if isinstance(seen, NodesSeen):
            nodes.update({node.name: node for node in seen.nodes})
        return any(claim.run == order.run for node in nodes.values() for claim in node.claims)

    watching.until("its nodes", lambda seen: isinstance(seen, NodesSeen) and seen.whole and not holds(seen))
    under_test.fleet.launch(order)
    watching.until("that the run holds GPUs", holds)
    held = [node for node in nodes.values() if any(claim.run == order.run for claim in node.claims)]
    claims = [claim for node in held for claim in node.claims if claim.run == order.run]
    assert {claim.pool for claim in claims} == {pool.name for pool in order.spec.pools}
    assert sum(claim.room.gpus for claim in claims) == order.spec.gpus
    assert sum(node.used.gpus for node in held) == order.spec.gpus
    under_test.fleet.delete(order.run)
    watching.until("that it holds none", lambda seen: isinstance(seen, NodesSeen) and not holds(seen))


def test_a_fleet_that_works_says_so_and_asks_for_nothing_again(under_test: FleetUnderTest) -> None:
    asked = Access(AT, ())
    for probe in (under_test.fleet.health(), under_test.fleet.health(asked)):
        assert [(one.status, one.message) for one in probe.findings] == [(HealthStatus.OK, None)]


def test_a_watch_ends_when_it_is_told_to(under_test: FleetUnderTest) -> None:
    watching = Watching(under_test)
    list(watching.rest())
    assert list(watching.rest()) == []
