"""Playgrounds in the database: rows, pages, filters, what is due, and all that belongs to their runs."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from starforge.adapters.store import SqlStore
from starforge.api.playgrounds.subscriptions import matches
from starforge.domain.changes import Changes, IdempotencyRecord, LogWrite, NewCommand
from starforge.domain.errors import NotFound, StaleRevision
from starforge.domain.job import Actor, ActorKind
from starforge.domain.logs import LogKind, LogLine, LogSource
from starforge.domain.names import CommandId, JobId, PlaygroundId
from starforge.domain.playground import (
    Answering,
    Playground,
    PlaygroundState,
    Usage,
    become_ready,
    end,
    new_clocks,
)
from starforge.domain.playground_spec import PlaygroundDraft, freeze_playground
from starforge.domain.queries import EventFilter, FeedKind, LogRange, PlaygroundFilter, Window
from starforge.domain.reason import ReasonCode, reason
from starforge.domain.spec import Deadlines, EnvVar, FleetDefaults, Label
from starforge.domain.timeline import CommandKind, Entry, PlaygroundStateChanged, Severity
from tests.contract.store.examples import AT

DEFAULTS = FleetDefaults("home", None, 1, "2Gi", "1Gi", Deadlines(0, 1800, 0), 30, has_images=False)
S = PlaygroundState


def a_playground(number: int = 1, *, project: str = "vision", by: str = "ann", job: str | None = None) -> Playground:
    draft = PlaygroundDraft(
        f"chat {number}",
        "h200",
        1,
        "org/model",
        project=project,
        args=("--max-model-len", "8"),
        env=(EnvVar("A", "ä"),),
        labels=(Label("team", "red"),),
        from_job=JobId(job) if job else None,
    )
    spec, at = freeze_playground(draft, DEFAULTS), AT + timedelta(seconds=number)
    id_ = PlaygroundId(f"play-{number:04}")
    return Playground(id_, spec, S.STARTING, at, Actor(by, ActorKind.USER), at, new_clocks(spec, at))


def save(store: SqlStore, *playgrounds: Playground) -> None:
    changes = Changes()
    for one in playgrounds:
        changes.playground(one)
    store.commit(changes, at=AT)


def get(store: SqlStore, one: Playground) -> Playground:
    return store.playgrounds_by_id([one.id])[one.id]


def test_what_is_written_is_read(store: SqlStore) -> None:
    ready = become_ready(a_playground(), AT)
    used = Usage(3, 10, 2**40, (0.5, 0.25), (Answering("gateway", 2, AT),))
    full = replace(ready, usage=used, reason=reason(ReasonCode.NODE_LOST, "Lost.", AT), last_used_at=AT)
    save(store, full)
    assert get(store, full) == replace(full, revision=1)
    ended = end(get(store, full), S.FAILED, reason(ReasonCode.SERVER_FAILED, "It ended.", AT), AT)
    save(store, ended)
    assert get(store, full) == replace(ended, revision=2)
    assert store.playgrounds_by_id([PlaygroundId("play-none")]) == {}


def test_who_read_an_older_revision_is_refused(store: SqlStore) -> None:
    one = a_playground()
    save(store, one)
    read = get(store, one)
    save(store, become_ready(read, AT))
    for stale in (one, read, replace(read, revision=9)):
        with pytest.raises(StaleRevision):
            save(store, stale)
    assert get(store, one).revision == 2


def test_the_feed_tells_of_what_is_told(store: SqlStore) -> None:
    one = a_playground()
    save(store, one)
    changes = Changes()
    changes.playground(get(store, one), told=False)
    assert list(store.commit(changes, at=AT)) == []
    (row,) = store.feed(after=0, limit=10)
    assert (row.kind, row.subject, row.job, row.project, row.revision) == (
        FeedKind.PLAYGROUND, one.id, one.id, "vision", 1,
    )  # fmt: skip
    assert get(store, one).revision == 2


def test_pages_are_newest_first(store: SqlStore) -> None:
    save(store, *(a_playground(number) for number in range(5)))
    first = store.playground_page(PlaygroundFilter(), Window(2))
    assert [row.id for _, row in first.rows] == ["play-0004", "play-0003"]
    rest = store.playground_page(PlaygroundFilter(), Window(9, after=first.rows[-1][0]))
    assert [row.id for _, row in rest.rows] == ["play-0002", "play-0001", "play-0000"]
    assert (first.has_next, rest.has_next, rest.has_previous) == (True, False, True)


def test_what_is_due_is_told_until_it_has_ended(store: SqlStore) -> None:
    waits, ready = a_playground(1), become_ready(a_playground(2), AT)
    over = end(a_playground(3), S.STOPPED, None, AT)
    save(store, waits, ready, over)
    assert store.overdue_playgrounds(at=AT + timedelta(seconds=1500), limit=9) == []
    announced = AT + timedelta(seconds=1800 - 180)
    assert store.overdue_playgrounds(at=announced, limit=9) == [ready.id]
    assert set(store.overdue_playgrounds(at=AT + timedelta(days=9), limit=9)) == {waits.id, ready.id}


def test_what_belongs_to_its_run_is_kept_like_that_of_a_job(store: SqlStore) -> None:
    one = a_playground()
    source = LogSource(one.key, one.log, LogKind.CONTAINER, lines=1, bytes=4)
    detail = PlaygroundStateChanged(S.STARTING, None)
    entry = Entry("event-1", one.key, Severity.INFO, "It starts.", AT, AT, detail)
    command = NewCommand(CommandId("command-1"), CommandKind.START_PLAYGROUND, one.key, AT)
    key = IdempotencyRecord("vision", "createPlayground", "key", "ab", one.key.job, 1, AT)
    changes = Changes(
        entries=[entry],
        commands=[command],
        logs=[LogWrite(source, (LogLine(1, "one"),))],
        idempotency=[key],
    )
    changes.playground(one)
    store.commit(changes, at=AT)
    assert [found for _, found in store.entry_page(EventFilter(jobs=(one.key.job,)), Window(9)).rows] == [entry]
    assert [found for _, found in store.entry_page(EventFilter(projects=("vision",)), Window(9)).rows] == [entry]
    assert store.log_sources([one.key]) == {one.key: [source]}
    assert [line.text for line in store.log_lines(LogRange(one.key, one.log, 1, 9))] == ["one"]
    assert store.idempotency("vision", "createPlayground", "key") == key
    lease = store.take(CommandId("command-1"), token="me", at=AT, lease_s=30)
    assert lease
    assert (lease.command.kind, lease.command.run) == (CommandKind.START_PLAYGROUND, one.key)


def test_two_commands_of_one_are_never_taken_at_once(store: SqlStore) -> None:
    one, changes = a_playground(), Changes()
    changes.playground(one)
    for number, kind in enumerate((CommandKind.START_PLAYGROUND, CommandKind.STOP_PLAYGROUND)):
        changes.commands.append(NewCommand(CommandId(f"command-{number}"), kind, one.key, AT))
    store.commit(changes, at=AT)
    taken = [store.take(CommandId(f"command-{number}"), token="me", at=AT, lease_s=30) for number in range(2)]
    assert [lease is not None for lease in taken] == [True, False]


def test_nothing_is_written_about_a_playground_that_is_not_there(store: SqlStore) -> None:
    entry = Entry(
        "event-1", a_playground().key, Severity.INFO, "It starts.", AT, AT, PlaygroundStateChanged(S.READY, None)
    )
    with pytest.raises(NotFound):
        store.commit(Changes(entries=[entry]), at=AT)


MANY = [
    replace(one, state=state)
    for number, state in enumerate([*S, *S])
    for one in [
        a_playground(number, project="vs"[number % 2], by="ab"[number // 5], job="job-1" if number % 3 else None)
    ]
]
_SOME = st.none() | st.lists(st.sampled_from(["v", "s", "a", "b", "home", "other"]), max_size=2).map(tuple)
FILTERS = st.builds(
    PlaygroundFilter,
    ids=st.none() | st.lists(st.sampled_from([one.id for one in MANY]), max_size=6).map(tuple),
    states=st.none() | st.lists(st.sampled_from(list(S)), max_size=3).map(tuple),
    active=st.none() | st.booleans(),
    projects=_SOME,
    fleets=_SOME,
    created_by=_SOME,
    from_job=st.none() | st.just(JobId("job-1")),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(which=FILTERS)
def test_the_database_and_the_subscription_mean_the_same_by_a_filter(store: SqlStore, which: PlaygroundFilter) -> None:
    if not store.playgrounds_by_id([MANY[0].id]):
        save(store, *MANY)
    found = {row.id for _, row in store.playground_page(which, Window(100)).rows}
    assert found == {one.id for one in MANY if matches(which, one)}
