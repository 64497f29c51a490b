"""The feed: a row for each change, at contiguous positions."""

from dataclasses import replace

from starforge.adapters.store import SqlStore
from starforge.domain.changes import Aspect, Changes, LogWrite
from starforge.domain.logs import LogKind, LogLine, LogSource, LogState
from starforge.domain.queries import FeedKind, FeedRow
from tests.contract.store.examples import AT, a_job, after, an_entry, save, saved


def test_a_commit_tells_of_jobs_entries_and_logs_in_this_order(store: SqlStore) -> None:
    job = a_job()
    log = LogSource(job.run, "driver", LogKind.DRIVER, lines=1, bytes=3)
    changes = Changes(
        entries=[an_entry("e", job.run), an_entry("f", None, fleet="home")], logs=[LogWrite(log, (LogLine(1, "hi"),))]
    )
    changes.job(job, Aspect.STATE, Aspect.PODS)
    rows = store.commit(changes, at=AT)
    assert rows == [
        FeedRow(1, AT, FeedKind.JOB, job.id, job.id, "vision", 1, frozenset({Aspect.STATE, Aspect.PODS})),
        FeedRow(2, AT, FeedKind.EVENT, "e", job.id, "vision"),
        FeedRow(3, AT, FeedKind.EVENT, "f", None, None),
        FeedRow(4, AT, FeedKind.LOG, "job-0001/1 driver", job.id, "vision"),
    ]
    assert store.feed(after=0, limit=9) == rows
    assert store.feed(after=1, limit=2) == rows[1:3]
    assert store.feed_bounds() == (0, 4)


def test_a_log_is_told_of_when_it_grows_or_changes_its_state(store: SqlStore) -> None:
    run = saved(store).run
    log = LogSource(run, "driver", LogKind.DRIVER)

    def told(source: LogSource, *lines: LogLine) -> int:
        return len(store.commit(Changes(logs=[LogWrite(source, lines)]), at=AT))

    assert told(log) == 1
    assert told(replace(log, cursor="a")) == 0
    assert told(replace(log, lines=1), LogLine(1, "")) == 1
    assert told(replace(log, lines=1, cursor="b")) == 0
    assert told(replace(log, lines=1, state=LogState.CLOSED)) == 1


def test_a_job_written_without_aspects_is_not_told_of(store: SqlStore) -> None:
    job = saved(store)
    changes = Changes(entries=[an_entry("e", job.run)])
    changes.job(replace(job, updated_at=after(1)))
    assert [(row.position, row.kind) for row in store.commit(changes, at=AT)] == [(2, FeedKind.EVENT)]
    assert store.job(job.id) == replace(job, updated_at=after(1), revision=2)


def test_an_empty_feed(store: SqlStore) -> None:
    assert store.feed_bounds() == (0, 0)
    assert store.feed(after=0, limit=9) == []
    assert store.prune_feed(before=AT) == 0


def test_pruning_moves_the_floor_and_positions_go_on(store: SqlStore) -> None:
    for number in range(4):
        changes = Changes()
        changes.job(a_job(number), Aspect.STATE)
        store.commit(changes, at=after(number))
    assert store.prune_feed(before=after(2)) == 2
    assert store.feed_bounds() == (2, 4)
    assert [row.position for row in store.feed(after=0, limit=9)] == [3, 4]
    assert store.prune_feed(before=after(99)) == 2
    assert store.feed_bounds() == (4, 4)
    save(store, a_job(9))
    assert [row.position for row in store.feed(after=4, limit=9)] == [5]


def test_pruning_leaves_no_gap_where_clocks_of_processes_differ(store: SqlStore) -> None:
    for number, seconds in enumerate((0, 50, 1)):
        changes = Changes()
        changes.job(a_job(number), Aspect.STATE)
        store.commit(changes, at=after(seconds))
    assert store.prune_feed(before=after(10)) == 1
    assert [row.position for row in store.feed(after=1, limit=9)] == [2, 3]


def test_pruning_takes_many_rows_in_steps(store: SqlStore) -> None:
    run = saved(store).run
    store.commit(Changes(entries=[an_entry("e", run)] * 5100), at=AT)
    assert store.prune_feed(before=after(1)) == 5101
    assert store.feed_bounds() == (5101, 5101)
