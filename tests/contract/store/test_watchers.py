"""What was observed is written by whoever has the fleet's lease, and by nobody who had it before."""

from collections.abc import Callable

import pytest

from starforge.adapters.store import SqlStore
from starforge.domain.changes import Aspect, Changes, Watcher
from starforge.domain.errors import Superseded
from starforge.domain.job import Job
from tests.contract.store.examples import AT, a_job, after, saved

US = Watcher("home", "us")


def seen(job: Job, watcher: Watcher) -> Changes:
    changes = Changes(watcher=watcher)
    changes.job(job, Aspect.PODS)
    return changes


def renew(store: SqlStore, holder: str, seconds: float, lease_s: float = 15) -> bool:
    return store.renew_observer("home", holder=holder, at=after(seconds), lease_s=lease_s)


def test_who_observes_writes(store: SqlStore) -> None:
    job = saved(store)
    assert renew(store, "us", 0)
    assert len(store.commit(seen(job, US), at=AT)) == 1


def test_a_lease_that_ran_out_is_good_as_long_as_nobody_took_it(store: SqlStore) -> None:
    job = saved(store)
    assert renew(store, "us", 0)
    assert len(store.commit(seen(job, US), at=after(1000))) == 1


def test_who_was_followed_by_another_writes_nothing(open_store: Callable[[], SqlStore]) -> None:
    one, other = open_store(), open_store()
    job = saved(one)
    assert renew(one, "us", 0)
    assert renew(other, "them", 15)
    with pytest.raises(Superseded, match="somebody else"):
        one.commit(seen(job, US), at=after(15))
    assert one.jobs_by_id([job.id])[job.id].revision == job.revision
    assert one.feed_bounds()[1] == 1
    assert len(other.commit(seen(job, Watcher("home", "them")), at=after(15))) == 1


@pytest.mark.parametrize("watcher", [Watcher("home", "them"), Watcher("away", "us")])
def test_it_is_about_one_fleet_and_one_holder(store: SqlStore, watcher: Watcher) -> None:
    assert renew(store, "us", 0)
    with pytest.raises(Superseded):
        store.commit(seen(a_job(2), watcher), at=AT)


def test_a_lease_that_is_given_back_is_free_at_once(open_store: Callable[[], SqlStore]) -> None:
    one, other = open_store(), open_store()
    assert renew(one, "us", 0)
    assert not renew(other, "them", 1)
    assert renew(one, "us", 1, lease_s=0)
    assert renew(other, "them", 1)
