"""Lines of an archived log go to the object store, under readers who can't tell, whatever fails on the way."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from starforge.domain import chunks
from starforge.domain.actions import log_rows, move_logs
from starforge.domain.actions.move_logs import LEASE_S
from starforge.domain.errors import NotFound, ObjectStoreUnavailable, StaleRevision
from starforge.domain.log_parts import pack, read_log
from starforge.domain.logs import DRIVER, LogLine
from starforge.domain.names import JobId
from starforge.domain.observation import RunPhase
from starforge.domain.queries import LogRange
from tests.unit.actions.fakes import Crash
from tests.unit.actions.test_ticks import tick
from tests.unit.actions.world import World, head


@contextmanager
def small(part: int = 5, chunk: int = 2) -> Iterator[None]:
    """Parts and chunks of few lines, so that a short log has many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(move_logs, "PART_LINES", part)
        patch.setattr(move_logs, "DROPPED_AT_ONCE", 2)
        patch.setattr(log_rows, "PAGE", 3)
        patch.setattr(chunks, "CHUNK_LINES", chunk)
        yield


def archived(world: World, lines: int, *, at_once: int = 3) -> JobId:
    """A job that has ended, of whose log all lines are rows still."""
    job = world.running()
    texts = [f"line {number}" for number in range(1, lines + 1)]
    for start in range(0, lines, at_once):
        world.say(job, *texts[start : start + at_once])
    world.say(job, world.exit(job, 0))
    world.see(job, RunPhase.SUCCEEDED, head())
    world.settle(10)
    assert world.job(job).ended
    return job


def read(world: World, job: JobId, first: int = 1, last: int = 10_000, key: str = DRIVER) -> list[LogLine]:
    return list(read_log(world.sql, world.ports.objects, LogRange(world.run(job), key, first, last)))


def move(world: World) -> None:
    move_logs.move_logs(world.ports, seconds=1)


def is_moved(world: World, job: JobId) -> bool:
    world.clock.forward(LEASE_S + 1)
    taken = world.sql.take_unmoved_log(at=world.clock(), lease_s=1)
    return taken is None and not world.log(job)


def test_the_beat_moves_every_line_of_an_archived_log(world: World) -> None:
    with small():
        job = archived(world, 11)
        before, source = read(world, job), world.source(job)
        tick("logs", world)
        assert is_moved(world, job)
        assert read(world, job) == before
        assert [line.number for line in before] == list(range(1, 12))
    assert world.source(job) == source
    assert len([key for key in world.objects.objects if key.endswith(".lines.gz")]) == 3


def test_a_log_that_runs_or_is_not_archived_yet_stays(world: World) -> None:
    job = world.running()
    world.say(job, "one", "two", world.exit(job, 0))
    move(world)
    assert len(world.log(job)) == 2
    world.objects.down = True
    world.see(job, RunPhase.SUCCEEDED, head())
    world.settle(3)
    world.objects.down = False
    move(world)
    assert len(world.log(job)) == 2


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_a_reader_meets_no_seam_at_any_step_of_a_move(new_world: Callable[[], World], data: st.DataObject) -> None:
    """Pages, cursor by cursor, read while workers move a log and die of it anywhere, are what the log was."""
    world = new_world()
    with small(part=data.draw(st.integers(2, 9)), chunk=data.draw(st.integers(1, 4))):
        job = archived(world, data.draw(st.integers(1, 25)), at_once=data.draw(st.integers(1, 7)))
        whole = read(world, job)
        size, after = data.draw(st.integers(1, 9)), 0
        seen: list[LogLine] = []

        def read_on() -> None:
            nonlocal after
            assert read(world, job) == whole
            page = read(world, job, after + 1, min(after + size, len(whole)))
            seen.extend(page)
            after += len(page)

        for at in data.draw(st.lists(st.integers(1, 30), max_size=6)):
            world.faults.count, world.faults.at = 0, at
            try:
                move(world)
            except Crash:
                world.clock.forward(LEASE_S + 1)
            finally:
                world.faults.at = None
            read_on()
        move(world)
        assert is_moved(world, job)
        while after < len(whole):
            read_on()
        assert seen == whole


def test_a_worker_that_dies_at_any_step_leaves_a_log_that_is_moved_in_the_end(new_world: Callable[[], World]) -> None:
    hit: list[str | None] = []
    with small():
        while None not in hit:
            world = new_world()
            job = archived(world, 7)
            before = read(world, job)
            world.faults.count, world.faults.at = 0, len(hit) + 1
            with suppress(Crash):
                move(world)
            hit.append(world.faults.hit)
            world.faults.at = None
            assert read(world, job) == before
            world.clock.forward(LEASE_S + 1)
            move(world)
            assert is_moved(world, job)
            assert read(world, job) == before
    assert {"put", "stored", "read", "keep", "kept", "drop", "dropped"} <= set(hit)


def test_while_the_object_store_is_away_rows_stay_and_it_goes_on_by_itself(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    job = archived(world, 4)
    before = read(world, job)
    world.objects.down = True
    tick("logs", world)
    assert "archived lines stay in the database until the next turn" in caplog.text
    assert (world.log(job), read(world, job)) == (before, before)
    world.objects.down = False
    world.clock.forward(LEASE_S + 1)
    tick("logs", world)
    assert is_moved(world, job)


def test_moved_lines_can_not_be_read_while_the_object_store_is_away(world: World) -> None:
    job = archived(world, 4)
    move(world)
    world.objects.down = True
    with pytest.raises(ObjectStoreUnavailable, match=r"Lines 1 to 4 of the log driver of .* are archived"):
        read(world, job, 1, 4)


@pytest.mark.parametrize("spoiled", [b"", b"something else"])
def test_what_reads_back_otherwise_is_not_dropped_and_holds_up_no_other_log(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, spoiled: bytes
) -> None:
    job = archived(world, 4)
    before, put = read(world, job), world.objects.put

    def spoil(key: str, source: bytes, **rest: bool) -> bool:
        return put(key, spoiled if "/driver." in key else source, **rest)

    monkeypatch.setattr(world.objects, "put", spoil)
    move(world)
    assert "reads back otherwise" in caplog.text
    assert (world.log(job), read(world, job)) == (before, before)
    monkeypatch.undo()
    world.clock.forward(LEASE_S + 1)
    move(world)
    assert is_moved(world, job)


def test_one_who_comes_late_changes_nothing(world: World) -> None:
    with small():
        job = archived(world, 11)
        before, source = read(world, job), world.source(job)
        assert source is not None
        taken = world.sql.take_unmoved_log(at=world.clock(), lease_s=LEASE_S)
        assert taken is not None
        _, late = pack(source, before[:5])
        world.clock.forward(LEASE_S + 1)
        move(world)
        stored = dict(world.objects.objects)
        with pytest.raises(StaleRevision):
            world.sql.keep_log_part(late)
        with pytest.raises(StaleRevision):
            list(log_rows.row_pages(world.ports.store, source))
        assert not world.sql.drop_moved_lines(source, at=world.clock(), limit=1)
        assert read(world, job) == before
    assert world.objects.objects == stored
    assert is_moved(world, job)


def test_an_object_that_somebody_removed_is_told(world: World) -> None:
    job = archived(world, 4)
    move(world)
    world.objects.objects.clear()
    with pytest.raises(NotFound, match="are lost: the object logs/"):
        read(world, job, 1, 4)


def test_long_logs_are_moved_within_the_memory_of_a_part(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job = archived(world, 40)
    largest = 0
    monkeypatch.setattr(move_logs, "PART_BYTES", 20)
    monkeypatch.setattr(log_rows, "PAGE_BYTES", 20)
    real = pack

    def measured(source: object, lines: list[LogLine]) -> object:
        nonlocal largest
        largest = max(largest, len(lines))
        return real(source, lines)  # type: ignore[arg-type]

    monkeypatch.setattr(move_logs, "pack", measured)
    before = read(world, job)
    move(world)
    assert is_moved(world, job)
    assert 1 <= largest <= 5
    assert read(world, job) == before
