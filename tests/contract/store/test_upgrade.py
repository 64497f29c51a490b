"""A database that the first release made and filled is read by this one, with nothing lost."""

# ruff: noqa: S608  # the statements are put together of constants alone
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from alembic import command
from sqlalchemy import Connection, inspect

from starforge.adapters.store import SqlStore, migrate
from starforge.adapters.store.engine import Database
from starforge.adapters.store.migrate import alembic_config
from starforge.domain.changes import Aspect, Changes, IdempotencyRecord
from starforge.domain.job import Job
from starforge.domain.progress import MetricPoint
from starforge.domain.queries import EventFilter, FeedKind, FeedRow, JobFilter, JobOrder, LogRange, Window
from starforge.domain.spec import Label
from starforge.domain.timeline import CommandKind
from tests.contract.store.examples import AT, a_command, a_job, a_spec, after, an_entry, save, taken

# As the first release wrote them, letter by letter: what the code writes by now must not change what it reads.
ATTEMPT = """
{"number":1,"requested_by":{"name":"ann","kind":"USER"},"created_at":"2026-03-04T05:06:07.891011Z","clocks":[
{"kind":"QUEUE","state":"RUNNING","limit_s":600,"started_at":"2026-03-04T05:06:07.891011Z",
"due_at":"2026-03-04T05:16:07.891011Z","ended_at":null},
{"kind":"PRE_RUNNING","state":"NOT_STARTED","limit_s":1800,"started_at":null,"due_at":null,"ended_at":null},
{"kind":"ACTIVE","state":"OFF","limit_s":null,"started_at":null,"due_at":null,"ended_at":null}],
"spans":[{"state":"SUBMITTED","entered_at":"2026-03-04T05:06:07.891011Z","left_at":null}],"outcome":null,"reason":null,
"exit_code":null,"ending":null,"cancellation":null,"run":null,"rayjob":null,"head_uid":null,"nonce_hashes":[],
"progress":null,"teardown":null,"archive":null,"exited_at":null,"launched_at":null,"started_at":null,
"finished_at":null,"logs_archived_at":null,"released_at":null,"ended_at":null,"observed_at":null,"stale_since":null,
"stale_problem":null}
"""
SPEC = """
{"name":"train","project":"vision","fleet":"home","description":null,"image":null,"command":["python3","train.py"],
"env":[],"pools":[{"name":"pool0","series":"h200","machines":1,"gpus_per_machine":1,"cpus":1,"memory":"2Gi",
"shm_size":"1Gi","image":null}],"deadlines":{"queue_seconds":600,"pre_running_seconds":1800,"active_seconds":0},
"labels":[{"key":"team","value":"red"}],"priority":0,"cancel_grace_seconds":30}
"""
DETAIL = '{"after":"SUBMITTED","before":null,"reason":null,"type":"STATE_CHANGED"}'
LOG = """
{"run":{"job":"job-0001","attempt":1},"key":"driver","kind":"DRIVER","state":"CLOSED","lines":2,"bytes":8,"pod":null,
"container":null,"first_line_at":null,"last_line_at":null,"closed_at":null,"sha256":"ab",
"object_key":"logs/job-0001/1/driver.log","cursor":null,"carry":null,"gaps":[],"problem":null}
"""
ROWS = (
    f"""INSERT INTO job (id, revision, attempt, name, project, fleet, state, active, created_by, created_by_kind,
        created_at, updated_at, priority, gpus, due_at, idempotency_key, spec)
    VALUES ('job-0001', 1, 1, 'train', 'vision', 'home', 'SUBMITTED', TRUE, 'ann', 'USER', $AT, $AT, 0, 1, $DUE,
        'key-1', '{SPEC}')""",
    f"INSERT INTO attempt (job_id, number, document) VALUES ('job-0001', 1, '{ATTEMPT}')",
    "INSERT INTO job_series (job_id, series) VALUES ('job-0001', 'h200')",
    "INSERT INTO job_label (job_id, key, value) VALUES ('job-0001', 'team', 'red')",
    """INSERT INTO command (id, kind, job_id, attempt, due_at, tries, outages)
    VALUES ('command-1', 'PACKAGE', 'job-0001', 1, $AT, 0, 0)""",
    """INSERT INTO feed (position, at, kind, subject, job, project, revision, aspects)
    VALUES (1, $AT, 'JOB', 'job-0001', 'job-0001', 'vision', 1, 'STATE')""",
    """INSERT INTO feed (position, at, kind, subject, job, project, revision, aspects)
    VALUES (2, $AT, 'EVENT', 'event-1', 'job-0001', 'vision', 0, '')""",
    "UPDATE feed_head SET head = 2",
    f"""INSERT INTO timeline (id, position, job_id, attempt, project, in_fleet, type, severity, message, first_at,
        last_at, count, detail)
    VALUES ('event-1', 2, 'job-0001', 1, 'vision', 'home', 'STATE_CHANGED', 0, 'It happened.', $AT, $AT, 1,
        '{DETAIL}')""",
    f"""INSERT INTO log_source (job_id, attempt, key, lines, state, document)
    VALUES ('job-0001', 1, 'driver', 2, 'CLOSED', '{LOG}')""",
    """INSERT INTO log_source (job_id, attempt, key, lines, state, document)
    VALUES ('job-0001', 1, 'pod/w/main', 1, 'OPEN', '{"object_key":null}')""",
    """INSERT INTO log_chunk (job_id, attempt, source, first, last, body)
    VALUES ('job-0001', 1, 'driver', 1, 2, '[["one",null],["two",null]]')""",
    "INSERT INTO metric_series (id, job_id, attempt, name) VALUES (1, 'job-0001', 1, 'loss')",
    "INSERT INTO metric_point (series, step, value, at) VALUES (1, 10, 0.5, $AT)",
    """INSERT INTO idempotency (project, mutation, key, body_sha256, job_id, attempt, created_at)
    VALUES ('vision', 'submitJob', 'key-1', 'ab', 'job-0001', 1, $AT)""",
)
JOB: Job = replace(a_job(1, a_spec(labels=(Label("team", "red"),))), revision=1, idempotency_key="key-1")


@pytest.fixture
def upgraded(empty_url: str) -> Iterator[SqlStore]:
    """What the first release left, as it is after `migrate`."""
    _first_release(empty_url)
    migrate(empty_url)
    store = SqlStore(empty_url)
    yield store
    store.close()


def _first_release(url: str) -> None:
    database = Database(url)
    try:
        with database.writing() as connection:
            command.upgrade(alembic_config(connection), "0001")
            for statement in ROWS:
                connection.exec_driver_sql(_for(connection, statement))
    finally:
        database.close()


def _for(connection: Connection, statement: str) -> str:
    """With times as the database has them: $AT is AT, $DUE ten minutes later."""
    is_sqlite = connection.dialect.name == "sqlite"
    at = "1772600767891011" if is_sqlite else "'2026-03-04T05:06:07.891011Z'"
    due = "1772601367891011" if is_sqlite else "'2026-03-04T05:16:07.891011Z'"
    return statement.replace("$AT", at).replace("$DUE", due)


def test_the_job_is_there_and_found(upgraded: SqlStore) -> None:
    assert upgraded.job(JOB.id) == JOB
    assert upgraded.attempts([JOB.id]) == {JOB.id: [JOB.attempt]}
    which = JobFilter(projects=("vision",), series=("h200",), idempotency_keys=("key-1",))
    assert [job for _, job in upgraded.job_page(which, JobOrder(), Window(10)).rows] == [JOB]
    assert upgraded.overdue(at=after(601), limit=10) == [JOB.id]


def test_the_feed_goes_on_where_it_was(upgraded: SqlStore) -> None:
    told = [
        FeedRow(1, AT, FeedKind.JOB, JOB.id, JOB.id, "vision", 1, frozenset({Aspect.STATE})),
        FeedRow(2, AT, FeedKind.EVENT, "event-1", JOB.id, "vision"),
    ]
    assert upgraded.feed(after=0, limit=10) == told
    save(upgraded, a_job(2))
    assert upgraded.feed_bounds() == (0, 3)


def test_the_timeline_is_there(upgraded: SqlStore) -> None:
    entry = an_entry("event-1", JOB.run)
    assert upgraded.entries(["event-1"]) == {"event-1": entry}
    assert [one for _, one in upgraded.entry_page(EventFilter(), Window(10)).rows] == [entry]


def test_the_command_is_done_and_the_job_goes_on(upgraded: SqlStore) -> None:
    assert upgraded.due(at=AT, limit=10) == ["command-1"]
    lease = taken(upgraded, "command-1")
    assert (lease.command.kind, lease.command.run) == (CommandKind.PACKAGE, JOB.run)
    changes = Changes(done=True, commands=[a_command("command-2", JOB, CommandKind.LAUNCH)])
    changes.job(JOB, Aspect.STATE)
    upgraded.commit(changes, at=AT, lease=lease)
    assert upgraded.due(at=AT, limit=10) == ["command-2"]


def test_metrics_and_idempotency_keys_are_there(upgraded: SqlStore) -> None:
    assert upgraded.metric_points(JOB.run, None, None, None) == [MetricPoint("loss", 0.5, AT, 10)]
    record = IdempotencyRecord("vision", "submitJob", "key-1", "ab", JOB.id, 1, AT)
    assert upgraded.idempotency("vision", "submitJob", "key-1") == record
    assert upgraded.prune_idempotency(before=after(1)) == 1


def test_old_keys_are_found_by_an_index(upgraded: SqlStore) -> None:
    indexes: list[Any] = inspect(upgraded.database.engine).get_indexes("idempotency")
    assert ["created_at"] in [one["column_names"] for one in indexes]


def test_a_log_that_was_archived_is_read_and_its_lines_are_to_be_moved(upgraded: SqlStore) -> None:
    which = LogRange(JOB.run, "driver", 1, 2)
    assert [line.text for line in upgraded.log_ranges([which])[which].lines] == ["one", "two"]
    unmoved = upgraded.take_unmoved_log(at=AT, lease_s=60)
    assert unmoved
    assert (unmoved.source.key, unmoved.source.lines, unmoved.moved) == ("driver", 2, 0)
    assert upgraded.take_unmoved_log(at=AT, lease_s=60) is None
