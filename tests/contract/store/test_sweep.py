"""What the sweep remembers, and what is forgotten, on each database."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import inspect

from starforge.adapters.store import SqlStore
from starforge.adapters.store import sweep as sweeping
from starforge.domain.changes import Changes, Upload
from starforge.domain.job import JobState, move
from starforge.domain.names import Digest, JobId, RunKey
from tests.contract.store.examples import AT, a_command, a_job, after, save, taken

ONE, OTHER = RunKey(JobId("job-1"), 1), RunKey(JobId("job-1"), 2)


def test_who_share_a_database_are_one_installation(open_store: Callable[[], SqlStore]) -> None:
    stores = [open_store() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        ids = list(pool.map(lambda pair: pair[1].installation(new=f"forge-{pair[0]}"), enumerate(stores)))
    assert len(set(ids)) == 1
    assert ids[0].startswith("forge-")
    assert stores[0].installation(new="forge-late") == ids[0]


def test_a_stray_is_one_since_it_was_first_noted_in_a_row(store: SqlStore) -> None:
    assert store.strays("home") == {}
    store.note_strays("home", [ONE, OTHER], at=AT)
    store.note_strays("home", [ONE, OTHER, ONE], at=after(60))
    assert store.strays("home") == {ONE: AT, OTHER: AT}
    store.note_strays("home", [OTHER], at=after(120))
    store.note_strays("home", [ONE, OTHER], at=after(180))
    assert store.strays("home") == {ONE: after(180), OTHER: AT}
    store.note_strays("home", [], at=after(240))
    assert store.strays("home") == {}


def test_fleets_have_strays_of_their_own(store: SqlStore) -> None:
    store.note_strays("home", [ONE], at=AT)
    store.note_strays("away", [], at=AT)
    assert store.strays("away") == {}
    assert store.strays("home") == {ONE: AT}


def test_two_sweeps_at_once_note_one_stray(open_store: Callable[[], SqlStore]) -> None:
    stores = [open_store() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda store: store.note_strays("home", [ONE, OTHER], at=AT), stores))
    assert stores[0].strays("home") == {ONE: AT, OTHER: AT}


def done(store: SqlStore, number: int, seconds: int) -> None:
    """A command of a job of its own that was done at a time."""
    job, name = a_job(number), f"command-{number}"
    save(store, job, commands=(a_command(name, job),))
    store.commit(Changes(done=True), at=after(seconds), lease=taken(store, name))


def test_commands_that_were_done_long_ago_are_forgotten(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "PRUNE_AT_ONCE", 2)
    for number in range(5):
        done(store, number, number)
    job = a_job(9)
    open_one = a_command("open", job)
    save(store, job, commands=(open_one,))
    assert store.prune_commands(before=after(4)) == 4
    assert store.prune_commands(before=after(4)) == 0
    assert store.prune_commands(before=after(5)) == 1
    assert list(store.due(at=after(5), limit=9)) == [open_one.id]


def test_commands_that_are_done_are_found_by_an_index(store: SqlStore) -> None:
    indexes: list[Any] = inspect(store.database.engine).get_indexes("command")
    assert ["done_at"] in [one["column_names"] for one in indexes]


def upload(digest: str, *, at: int, sha256: str | None = None) -> Upload:
    return Upload(Digest(digest), sha256 or f"zip of {digest}", 10, 1, after(at))


def test_uploads_that_nobody_uses_are_told_oldest_first(store: SqlStore) -> None:
    uploads = [upload("a", at=1), upload("b", at=0), upload("c", at=2)]
    store.commit(Changes(uploads=uploads), at=AT)
    assert store.unused_uploads(before=after(2), limit=9) == [uploads[1], uploads[0]]
    assert store.unused_uploads(before=after(2), limit=1) == [uploads[1]]


@pytest.mark.parametrize(
    ("state", "used"), [(JobState.SUBMITTED, True), (JobState.PACKAGING, True), (JobState.FINISHING, False)]
)
def test_an_upload_is_used_until_the_job_is_packaged(store: SqlStore, state: JobState, *, used: bool) -> None:
    job = replace(a_job(), code=Digest("a"))
    save(store, job if state is JobState.SUBMITTED else move(job, state, after(1)))
    store.commit(Changes(uploads=[upload("a", at=0)]), at=AT)
    assert bool(store.unused_uploads(before=after(9), limit=9)) is not used


def test_an_upload_stays_whose_object_was_announced_again_under_another_name(store: SqlStore) -> None:
    store.commit(Changes(uploads=[upload("a", at=0, sha256="zip"), upload("b", at=9, sha256="zip")]), at=AT)
    assert store.unused_uploads(before=after(5), limit=9) == []
    assert len(store.unused_uploads(before=after(10), limit=9)) == 2


def test_an_upload_is_forgotten_unless_it_was_announced_again(store: SqlStore) -> None:
    old = upload("a", at=0)
    store.commit(Changes(uploads=[old]), at=AT)
    store.commit(Changes(uploads=[upload("a", at=1)]), at=after(1))
    assert not store.forget_upload(old)
    assert store.upload(Digest("a"))
    assert store.forget_upload(upload("a", at=1))
    assert store.upload(Digest("a")) is None
    assert not store.forget_upload(old)


def test_times_survive_as_they_were_given(store: SqlStore) -> None:
    at = AT + timedelta(microseconds=123_456)
    store.note_strays("home", [ONE], at=at)
    assert store.strays("home") == {ONE: at}
