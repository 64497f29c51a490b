"""Logs are closed, stored, read back and listed; what could not be had is said."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from starforge.domain.actions.archive import archive
from starforge.domain.actions.hear import hear
from starforge.domain.actions.launch import claim_key
from starforge.domain.actions.log_objects import manifest_key, source_key
from starforge.domain.changes import Changes, LogWrite, NewCommand
from starforge.domain.job import JobState, LogArchive
from starforge.domain.log_waits import DRIVER_PATIENCE, UNREADABLE_PATIENCE
from starforge.domain.logs import DRIVER, LINE_MAX_BYTES, LogKind, LogLine, LogSource, LogState
from starforge.domain.names import CommandId, JobId
from starforge.domain.observation import PodCondition, RawLine, RunPhase
from starforge.domain.queries import LogRange
from starforge.domain.reason import ReasonCode
from starforge.domain.teardown import TeardownState
from starforge.domain.timeline import CommandKind, EventType
from tests.unit.actions.fakes import Crash
from tests.unit.actions.world import HEAD_LOG, World, head, pod


def manifest(world: World, job: JobId) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(world.objects.objects[manifest_key(world.run(job))])
    return content


def kept(world: World, job: JobId) -> LogArchive:
    found = world.job(job).attempt.archive
    assert found is not None
    return found


def died(world: World) -> JobId:
    """A job whose head died, so that nobody told the end of its log."""
    job = world.running()
    world.say(job, "one")
    world.see(job, RunPhase.FAILED, head(), message="the head died")
    return job


def test_every_log_is_an_object_with_its_checksum_in_the_manifest(world: World) -> None:
    job = world.running()
    seen = world.lines(job, "ä", "b", world.exit(job, 0))
    world.observer.observe([seen])
    world.say(job, source="pod/worker/main")
    world.see(job, RunPhase.SUCCEEDED, head())
    world.work()
    run = world.run(job)
    assert world.objects.objects[source_key(run, DRIVER)] == "ä\nb\n".encode()
    rows = {row["source"]: row for row in manifest(world, job)["logs"]}
    assert set(rows) == {DRIVER, HEAD_LOG, "pod/worker/main"}
    for row in rows.values():
        content = world.objects.objects[row["object"]]
        assert row["sha256"] == hashlib.sha256(content).hexdigest()
        assert row["bytes"] == len(content)
        assert row["lines"] == content.count(b"\n")
        assert row["state"] == "CLOSED"
    archive_of = kept(world, job)
    assert (archive_of.sources, archive_of.lines, archive_of.bytes, archive_of.reason) == (3, 2, 5, None)
    assert archive_of.sha256 == hashlib.sha256(world.objects.objects[manifest_key(run)]).hexdigest()
    assert [entry.type for entry in world.entries(job)].count(EventType.LOG_CHANGED) == 1


def test_lines_stay_readable_after_they_were_stored(world: World) -> None:
    job = world.finishing()
    world.work()
    assert [line.text for line in world.log(job)] == ["hello"]
    source = world.source(job)
    assert source is not None
    assert source.object_key == source_key(world.run(job), DRIVER)


def test_it_waits_for_the_end_of_the_drivers_log(world: World) -> None:
    job = world.running()
    world.say(job, "one")
    world.see(job, RunPhase.SUCCEEDED, head())
    world.settle(DRIVER_PATIENCE.total_seconds() - 2)
    assert world.job(job).attempt.logs_archived_at is None
    assert world.fleet.deletes == []
    world.say(job, "two", world.exit(job, 0))
    world.work()
    assert world.objects.objects[source_key(world.run(job), DRIVER)] == b"one\ntwo\n"
    assert kept(world, job).reason is None


def test_its_patience_over_the_log_is_truncated_and_says_where(world: World) -> None:
    job = died(world)
    world.settle(DRIVER_PATIENCE.total_seconds() + 3)
    assert world.job(job).state is JobState.FAILED
    source = world.source(job)
    assert source is not None
    assert source.state is LogState.TRUNCATED
    assert [gap.after_line for gap in source.gaps] == [1]
    why = kept(world, job).reason
    assert why is not None
    assert why.code is ReasonCode.HEAD_LOST
    (row,) = [row for row in manifest(world, job)["logs"] if row["source"] == DRIVER]
    assert row["state"] == "TRUNCATED"
    assert row["gaps"][0]["after"] == 1


def test_lines_that_still_come_are_waited_for(world: World) -> None:
    """A long log may be read for longer than our patience with a silent one."""
    job = world.running()
    world.say(job, "begun")
    world.see(job, RunPhase.SUCCEEDED, head())
    for number in range(4):
        world.settle(DRIVER_PATIENCE.total_seconds() - 2)
        world.say(job, f"line {number}")
    world.say(job, world.exit(job, 0))
    world.work()
    assert world.objects.objects[source_key(world.run(job), DRIVER)] == b"begun\nline 0\nline 1\nline 2\nline 3\n"
    assert kept(world, job).reason is None


def test_a_log_that_nobody_can_read_is_waited_for_until_somebody_can(world: World) -> None:
    job = world.running()
    world.say(job, "one")
    world.see(job, RunPhase.SUCCEEDED, head())
    hear(world.ports, "nobody observes the fleet", tell=True)
    world.settle(DRIVER_PATIENCE.total_seconds() * 3)
    hear(world.ports, None, tell=True)
    world.settle(DRIVER_PATIENCE.total_seconds() - 2)
    world.say(job, "two", world.exit(job, 0))
    world.work()
    assert world.objects.objects[source_key(world.run(job), DRIVER)] == b"one\ntwo\n"


def test_a_driver_of_which_nothing_was_had_is_truncated_too(world: World) -> None:
    job = world.running()
    world.objects.objects[claim_key(world.run(job))] = b""
    world.see(job, RunPhase.FAILED, head(), message="the node is gone")
    world.settle(DRIVER_PATIENCE.total_seconds() + 3)
    source = world.source(job)
    assert source is not None
    assert (source.state, source.lines) == (LogState.TRUNCATED, 0)
    assert kept(world, job).reason is not None


def test_a_command_that_was_stopped_before_its_claim_has_no_log_to_miss(world: World) -> None:
    job = world.running()
    world.see(job, RunPhase.FAILED, head(), message="stopped while the runner came up")
    world.settle(5)
    assert world.job(job).ended
    assert world.source(job) is None
    assert kept(world, job).reason is None


def interrupted(world: World) -> JobId:
    """A job that ran well, and a worker whose log can't be read."""
    job = world.running()
    kept_of = replace(world.lines(job, source="pod/worker/main"), pod="worker", container="main")
    world.observer.observe([replace(kept_of, lines=(RawLine(b"one"),)), replace(kept_of, problem="no route to host")])
    world.say(job, "hello", world.exit(job, 0))
    return job


def test_a_log_that_cannot_be_read_is_waited_for_and_the_job_says_so(world: World) -> None:
    job = interrupted(world)
    world.see(job, RunPhase.SUCCEEDED, head(), pod("worker"))
    world.settle(UNREADABLE_PATIENCE.total_seconds() / 2)
    removal = world.job(job).attempt.teardown
    assert removal is not None
    assert removal.reason is not None
    assert (removal.state, world.fleet.deletes) == (TeardownState.AWAITING_ARCHIVE, [])
    assert "Container main of Pod worker can't be read: no route to host." in removal.reason.message
    last = replace(world.lines(job, source="pod/worker/main"), lines=(RawLine(b"two"),), pod="worker", container="main")
    world.observer.observe([last])
    world.settle(10)
    assert world.objects.objects[source_key(world.run(job), "pod/worker/main")] == b"one\ntwo\n"
    assert world.job(job).ended
    assert (kept(world, job).reason, world.job(job).attempt.teardown.reason) == (None, None)  # type: ignore[union-attr]


def test_a_log_that_cannot_be_read_holds_the_cluster_for_a_while_only(world: World) -> None:
    job = interrupted(world)
    world.see(job, RunPhase.SUCCEEDED, head(), pod("worker"))
    world.settle(UNREADABLE_PATIENCE.total_seconds() + 10)
    assert world.job(job).ended
    assert kept(world, job).reason is not None


INSIDE = PodCondition("ContainersReady", True)


def test_the_end_of_a_log_on_a_node_that_does_not_answer_is_waited_for(world: World) -> None:
    job = world.running()
    world.say(job, "one")
    silent = head(node_name="node-b", conditions=(INSIDE, PodCondition("Ready", False, changed_at=world.clock())))
    world.see(job, RunPhase.SUCCEEDED, silent)
    world.settle(DRIVER_PATIENCE.total_seconds() * 3)
    why = world.job(job).attempt.teardown.reason  # type: ignore[union-attr]
    assert why is not None
    assert "Node node-b of Head head of pool train has not answered since" in why.message
    world.see(job, RunPhase.SUCCEEDED, head(node_name="node-b", conditions=(INSIDE, PodCondition("Ready", True))))
    world.say(job, "two", world.exit(job, 0))
    world.work()
    assert world.objects.objects[source_key(world.run(job), DRIVER)] == b"one\ntwo\n"
    assert kept(world, job).reason is None


def test_a_node_that_kubernetes_gave_up_is_not_waited_for(world: World) -> None:
    job = interrupted(world)
    world.see(job, RunPhase.SUCCEEDED, head(), pod("worker", terminating=True))
    world.settle(5)
    assert world.job(job).ended


def test_a_log_whose_node_is_lost_is_truncated_and_says_where(world: World) -> None:
    job = world.running()
    kept_of = replace(world.lines(job, source="pod/worker/main"), pod="worker")
    world.observer.observe([replace(kept_of, lines=(RawLine(b"one"),)), replace(kept_of, problem="no route to host")])
    found = world.source(job, "pod/worker/main")
    assert found is not None
    assert found.state is LogState.INTERRUPTED
    world.say(job, "hello", world.exit(job, 0))
    world.see(job, RunPhase.SUCCEEDED, head())
    world.work()
    (row,) = [row for row in manifest(world, job)["logs"] if row["source"] == "pod/worker/main"]
    assert (row["state"], row["lines"]) == ("TRUNCATED", 1)
    assert row["gaps"] == [
        {"after": 1, "lines": None, "message": "The log could not be read to its end: no route to host."}
    ]
    why = kept(world, job).reason
    assert why is not None
    assert (why.code, "pod/worker/main" in why.message) == (ReasonCode.NODE_LOST, True)


def test_a_log_that_was_left_open_though_its_pod_is_gone_is_awaited_and_then_truncated(world: World) -> None:
    job = world.running()
    kept_of = world.lines(job, source="pod/worker/main")
    world.observer.observe([replace(kept_of, lines=(RawLine(b"one"),), pod="worker")])
    world.see(job, RunPhase.RUNNING, head(), pod("worker"))
    world.see(job, RunPhase.RUNNING, head())
    world.say(job, "hello", world.exit(job, 0))
    world.see(job, RunPhase.SUCCEEDED, head())
    world.work()
    assert world.job(job).attempt.logs_archived_at is None
    world.settle(DRIVER_PATIENCE.total_seconds() + 2)
    (row,) = [row for row in manifest(world, job)["logs"] if row["source"] == "pod/worker/main"]
    assert (row["state"], row["gaps"][0]["after"]) == ("TRUNCATED", 1)
    assert row["gaps"][0]["message"] == "The Pod was gone before its log was read to its end."


def test_a_long_line_is_stored_in_one_piece(world: World) -> None:
    job = world.running()
    long = "é" * LINE_MAX_BYTES + "x"
    world.say(job, long, "next", world.exit(job, 0))
    world.see(job, RunPhase.SUCCEEDED, head())
    world.work()
    content = world.objects.objects[source_key(world.run(job), DRIVER)]
    assert content == f"{long}\nnext\n".encode()
    assert [len(line.text) for line in world.log(job)] == [LINE_MAX_BYTES // 2] * 2 + [1, 4]
    (row,) = [row for row in manifest(world, job)["logs"] if row["source"] == DRIVER]
    assert (row["lines"], row["bytes"], row["sha256"]) == (4, len(content), hashlib.sha256(content).hexdigest())


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_a_reader_meets_no_seam_while_the_log_is_being_stored(
    new_world: Callable[[], World], data: st.DataObject
) -> None:
    """Any range, read at any step of a worker that stores the log or dies of it, is what it was."""
    world = new_world()
    job = world.running()
    texts = [f"line {number}" for number in range(1, data.draw(st.integers(1, 60)) + 1)]
    size = data.draw(st.integers(1, 20))
    for start in range(0, len(texts), size):
        world.say(job, *texts[start : start + size])
    world.say(job, world.exit(job, 0))
    world.see(job, RunPhase.SUCCEEDED, head())
    run = world.run(job)

    def read_some() -> None:
        first = data.draw(st.integers(1, len(texts)))
        last = data.draw(st.integers(first, len(texts)))
        found = world.sql.log_lines(LogRange(run, DRIVER, first, last))
        assert [(line.number, line.text) for line in found] == [
            (number, texts[number - 1]) for number in range(first, last + 1)
        ]

    (command,) = world.due()
    for at in data.draw(st.lists(st.integers(1, 22), max_size=3)):
        if command not in world.due():
            break
        lease = world.take(command)
        world.faults.count, world.faults.at = 0, at
        try:
            archive(world.ports, lease)
            break
        except Crash:
            world.clock.forward(200)
        finally:
            world.faults.at = None
            read_some()
    world.settle(10)
    read_some()
    assert world.job(job).ended


def test_what_is_held_of_the_last_line_is_stored(world: World) -> None:
    job = world.running()
    half = world.lines(job, "one")
    world.observer.observe(
        [type(half)(half.run, half.source, (*half.lines, world.frame("ha", ends=False)), half.cursor)]
    )
    world.see(job, RunPhase.FAILED, head(), message="killed")
    world.settle(DRIVER_PATIENCE.total_seconds() + 3)
    assert world.objects.objects[source_key(world.run(job), DRIVER)] == b"one\nha\n"
    assert [line.text for line in world.log(job)] == ["one", "ha"]


def test_a_job_that_never_ran_waits_for_last_words_alone(world: World) -> None:
    job = world.pending()
    world.observer.observe(
        [type(world.lines(job))(world.run(job), HEAD_LOG, (RawLine(b"starting"),), "c", "head", "ray-head")]
    )
    world.see(job, RunPhase.FAILED, message="no image")
    world.settle(5)
    assert world.job(job).state is JobState.FAILED
    assert kept(world, job).lines == 1
    assert world.source(job) is None


def test_a_store_that_is_down_holds_no_cluster(world: World) -> None:
    job = world.finishing()
    world.objects.down = True
    world.settle(5)
    teardown = world.job(job).attempt.teardown
    assert teardown is not None
    assert teardown.state is TeardownState.RELEASED
    assert world.job(job).state is JobState.FINISHING
    world.objects.down = False
    world.settle(31)
    assert world.job(job).state is JobState.SUCCEEDED


def test_a_worker_that_dies_anywhere_stores_the_same(new_world: Callable[[], World]) -> None:
    for at in range(1, 22):
        world = new_world()
        job = world.finishing()
        (command,) = world.due()
        world.faults.count, world.faults.at = 0, at
        try:
            archive(world.ports, world.take(command))
        except Crash:
            world.clock.forward(200)
        world.faults.at = None
        world.settle(4)
        assert world.job(job).state is JobState.SUCCEEDED
        assert len(manifest(world, job)["logs"]) == 2
        assert [entry.type for entry in world.entries(job)].count(EventType.LOG_CHANGED) == 1


def test_archived_twice_is_stored_once(world: World) -> None:
    job = world.finishing()
    world.fleet.lasts = 10
    world.work()
    world.objects.objects.clear()
    again = NewCommand(CommandId("again"), CommandKind.ARCHIVE, world.run(job), world.clock())
    world.sql.commit(Changes(commands=[again]), at=world.clock())
    world.work()
    assert world.objects.objects == {}
    assert world.job(job).state is JobState.FINISHING


def test_pages_of_a_long_log_are_put_together(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("starforge.domain.actions.log_rows.PAGE", 3)
    job = world.finishing()
    run = world.run(job)
    lines = tuple(LogLine(number, f"line {number}") for number in range(1, 11))
    source = LogSource(run, "pod/w/main", LogKind.CONTAINER, LogState.CLOSED, lines=10, bytes=71)
    world.sql.commit(Changes(logs=[LogWrite(source, lines)]), at=world.clock())
    world.work()
    text = world.objects.objects[source_key(run, "pod/w/main")].decode()
    assert text == "".join(f"{line.text}\n" for line in lines)
