"""The lease of a command is kept while its worker works at it, and no longer."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from starforge.domain.changes import Command, Lease
from starforge.domain.errors import StoreUnavailable
from starforge.domain.names import CommandId, JobId, RunKey
from starforge.domain.ports import Ports
from starforge.domain.timeline import CommandKind
from starforge.workers.leases import renewed
from tests.unit.actions.world import World

PATIENCE_S = 30


class Store:
    """Notes renewals and answers each as it is told to; the last answer stands."""

    def __init__(self, *answers: Callable[[], bool]) -> None:
        self.answers, self.asked = list(answers), 0
        self.there = threading.Condition()

    def renew(self, lease: Lease, **how: Any) -> bool:
        with self.there:
            self.asked += 1
            self.there.notify_all()
        return self.answers.pop(0)() if len(self.answers) > 1 else self.answers[0]()

    def until_asked(self, times: int) -> bool:
        with self.there:
            return self.there.wait_for(lambda: self.asked >= times, PATIENCE_S)


def away() -> bool:
    raise StoreUnavailable("no answer")


def a_lease(world: World) -> Lease:
    what = Command(CommandId("c"), CommandKind.ARCHIVE, RunKey(JobId("job-1"), 1), 1)
    return Lease(what, "token", world.clock())


def ports_with(world: World, store: Store) -> Ports:
    return replace(world.ports, store=cast("Any", store))


def keeper() -> threading.Thread:
    (found,) = [thread for thread in threading.enumerate() if thread.name == "lease-c"]
    return found


def test_it_is_renewed_until_the_work_is_done(world: World) -> None:
    store = Store(lambda: True)
    with renewed(ports_with(world, store), a_lease(world), every_s=0.01):
        thread = keeper()
        assert store.until_asked(3)
    assert not thread.is_alive()


def test_an_outage_of_the_database_is_borne(world: World) -> None:
    store = Store(away, away, lambda: True)
    with renewed(ports_with(world, store), a_lease(world), every_s=0.01):
        assert store.until_asked(4)


def test_a_lease_that_is_over_is_left_alone(world: World) -> None:
    store = Store(lambda: False)
    with renewed(ports_with(world, store), a_lease(world), every_s=0.01):
        keeper().join(PATIENCE_S)
    assert store.asked == 1


def test_work_that_fails_ends_it_too(world: World) -> None:
    held = renewed(ports_with(world, Store(lambda: True)), a_lease(world), every_s=0.01)
    held.__enter__()
    thread, failure = keeper(), ZeroDivisionError()
    assert not held.__exit__(ZeroDivisionError, failure, None), "it must not be swallowed"
    assert not thread.is_alive()
