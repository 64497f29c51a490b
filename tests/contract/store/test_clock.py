"""The time is the database's, whatever the clock of a host says."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from starforge.adapters.store import SqlStore
from starforge.adapters.store.clock import DatabaseClock
from starforge.domain.changes import Changes, JobWrite
from starforge.domain.names import CommandId
from tests.contract.store.conftest import emptied
from tests.contract.store.examples import AT, a_command, a_job, after

Opened = Callable[[str, Callable[[], datetime]], SqlStore]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Opens the store of a host whose own clock is given."""
    stores: list[SqlStore] = []

    def made(url: str, local: Callable[[], datetime]) -> SqlStore:
        stores.append(SqlStore(url, DatabaseClock(local)))
        return stores[-1]

    yield made
    for store in stores:
        store.close()


def wrong() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


def of_the_database(url: str) -> datetime:
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(plain, connect_timeout=10) as connection:
        row = connection.execute("SELECT clock_timestamp()").fetchone()
    assert row
    at: datetime = row[0]
    return at


def test_a_host_whose_clock_is_wrong_has_the_time_of_postgres(migrated_database: str, opened: Opened) -> None:
    url = migrated_database
    before = of_the_database(url)
    store = opened(url, wrong)
    assert store.now() > before + timedelta(minutes=59)
    store.feed_bounds()
    asked = store.now()
    assert before < asked < of_the_database(url)
    assert asked <= store.now()


def test_hosts_that_are_hours_apart_agree_on_leases(migrated_database: str, opened: Opened) -> None:
    url = emptied(migrated_database)
    fast, slow = opened(url, wrong), opened(url, lambda: AT)
    for store in (fast, slow):
        store.feed_bounds()
    job = a_job(at=fast.now())
    asked = a_command("c", job, due_at=fast.now())
    fast.commit(Changes(jobs=[JobWrite(job, frozenset())], commands=[asked]), at=fast.now())
    assert slow.due(at=slow.now(), limit=9) == ["c"]
    assert slow.take(CommandId("c"), token="slow", at=slow.now(), lease_s=60)
    assert fast.take(CommandId("c"), token="fast", at=fast.now(), lease_s=60) is None
    assert slow.renew_observer("home", holder="slow", at=slow.now(), lease_s=60)
    assert not fast.renew_observer("home", holder="fast", at=fast.now(), lease_s=60)


def test_a_machine_with_sqlite_has_its_own_time(migrated_file: Path, opened: Opened) -> None:
    store = opened(f"sqlite:///{migrated_file}", lambda: AT)
    store.feed_bounds()
    assert store.now() == AT


def test_something_goes_on_until_it_pauses(open_store: Callable[[], SqlStore]) -> None:
    one, other = open_store(), open_store()
    assert one.pulse("a", at=AT, pause_s=30) == AT
    assert other.pulse("a", at=after(30), pause_s=30) == AT
    assert other.pulse("b", at=after(30), pause_s=30) == after(30)
    assert one.pulse("a", at=after(29), pause_s=30) == AT  # two of them may come in any order
    assert one.pulse("a", at=after(60), pause_s=30) == AT
    assert other.pulse("a", at=after(90.001), pause_s=30) == after(90.001)
    assert one.pulse("a", at=after(91), pause_s=30) == after(90.001)
