"""Jobs that queue get their turn when all their pools fit, and the others are told why not, and where they are."""

from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from starforge.domain.actions.cancel import Wish, cancel
from starforge.domain.actions.see_nodes import see_nodes
from starforge.domain.actions.take_turns import Turns
from starforge.domain.capacity.nodes import Claim, NodesSeen, NodeView, Room
from starforge.domain.changes import Aspect, Watcher
from starforge.domain.errors import Superseded
from starforge.domain.health import ObserverHeard
from starforge.domain.job import JobState
from starforge.domain.names import JobId
from starforge.domain.observation import FleetHeard
from starforge.domain.queries import FeedKind
from starforge.domain.queue import Queueing
from starforge.domain.reason import ReasonCode
from starforge.domain.spec import PoolDraft, SpecDraft
from starforge.domain.timeline import EventType
from tests.unit.actions.fakes import START
from tests.unit.actions.world import ANN, DRAFT, World

ROOM = Room(8, 64_000, 2**40, 110)
NODE = NodeView("node-a", "h200", 8, ROOM)
_moments = count(1)


def wanting(gpus: int, *, name: str = "digits", priority: int = 0, series: str = "h200") -> SpecDraft:
    return replace(DRAFT, name=name, pools=(PoolDraft("train", series, 1, gpus),), priority=priority)


class Queue:
    """A world in which jobs queue, whose fleet is heard and has one node."""

    def __init__(self, world: World, mode: Queueing = Queueing.AUTO) -> None:
        world.ports = replace(world.ports, queueing=mode)
        self.world, self.turns = world, Turns(world.ports, Watcher("home", "me"))

    def hear(self, other: str | None = None) -> None:
        sql, now = self.world.sql, self.world.clock()
        assert sql.renew_observer("home", holder="me", at=now, lease_s=1000)
        sql.note_heard("home", holder="me", heard=ObserverHeard(now))
        self.turns.hear([FleetHeard(now, other_queue=other)])

    def see(self, *nodes: NodeView) -> None:
        at = START + timedelta(microseconds=next(_moments))
        see_nodes(self.world.ports, [NodesSeen(at, nodes, whole=True)], None)

    def submit(self, draft: SpecDraft, **rest: Any) -> JobId:
        """A job that comes a second after the one before, so that it is behind it."""
        self.world.clock.forward(1)
        return self.world.submit(draft, **rest)

    def take(self) -> None:
        self.world.clock.forward(3)
        self.hear()
        self.turns.take()

    def hold(self, *jobs: tuple[JobId, int]) -> None:
        """Have machines of jobs on the node."""
        claims = tuple(
            Claim(job, "pod", "ns", Room(gpus, 1000, 2**31, 1), self.world.run(job), None, "train", START)
            for job, gpus in jobs
        )
        used = sum((claim.room for claim in claims), Room())
        self.see(replace(NODE, used=used, claims=claims))


@pytest.fixture
def queue(world: World) -> Queue:
    made = Queue(world)
    made.hear()
    made.see(NODE)
    return made


def reason_of(world: World, job: JobId) -> str:
    why = world.job(job).attempt.reason
    assert why is not None
    assert why.code is ReasonCode.QUEUED
    return why.message


def test_a_job_that_comes_waits_and_says_so_and_nothing_is_done_for_it(queue: Queue) -> None:
    job = queue.submit(wanting(4))
    found = queue.world.job(job)
    assert (found.state, found.queues, queue.world.due()) == (JobState.SUBMITTED, True, [])
    assert reason_of(queue.world, job)


def test_it_goes_as_soon_as_all_its_pools_fit(queue: Queue) -> None:
    job = queue.submit(wanting(8))
    queue.take()
    found = queue.world.job(job)
    assert not found.queues
    assert found.attempt.reason is None
    assert found.attempt.queue is not None
    assert found.attempt.queue.admitted_at == queue.world.clock()
    queue.world.work()
    assert queue.world.job(job).state is JobState.PENDING
    told = [entry.message for entry in queue.world.entries(job) if entry.type is EventType.REASON_CHANGED]
    assert told[0].startswith("It leaves the queue.")


def test_what_had_its_turn_is_counted_before_it_has_a_pod_and_only_once_when_it_has(queue: Queue) -> None:
    first, second = queue.submit(wanting(4, name="first")), queue.submit(wanting(5, name="second"))
    queue.take()
    assert (queue.world.job(first).queues, queue.world.job(second).queues) == (False, True)
    queue.world.work()
    queue.take()
    assert queue.world.job(second).queues  # the Pod of the first is not on a node yet
    queue.hold((first, 4))
    third = queue.submit(wanting(4, name="third", priority=1))
    queue.take()
    assert not queue.world.job(third).queues
    queue.hold((third, 4))
    queue.world.work()
    assert queue.world.job(second).queues


def test_a_place_has_its_number_what_is_in_front_and_the_sentence_and_is_pushed(queue: Queue) -> None:
    holder = queue.submit(wanting(8))
    queue.take()
    queue.hold((holder, 8))
    front = queue.submit(wanting(8, name="front"))
    behind = queue.submit(wanting(2, name="behind"))
    queue.take()
    places = [queue.world.job(job).attempt.queue for job in (front, behind)]
    assert [(place.position, place.gpus_ahead) for place in places if place] == [(1, 0), (2, 8)]
    assert reason_of(queue.world, front) == places[0].decision if places[0] else False
    rows = [row for row in queue.world.feed() if row.kind is FeedKind.JOB and row.job == front]
    assert Aspect.QUEUE in rows[-1].aspects


def test_whoever_has_the_higher_priority_goes_first(queue: Queue) -> None:
    low, high = queue.submit(wanting(8, name="low")), queue.submit(wanting(8, name="high", priority=9))
    queue.take()
    assert (queue.world.job(low).queues, queue.world.job(high).queues) == (True, False)


def test_two_jobs_that_each_need_what_the_other_would_hold_run_one_after_the_other(queue: Queue) -> None:
    b200 = replace(NODE, name="node-b", series="b200", gpus=4, allocatable=replace(ROOM, gpus=4))
    queue.see(NODE, b200)
    crossed = [
        replace(DRAFT, name=name, pools=(PoolDraft("left", one, 1, some), PoolDraft("right", other, 1, rest)))
        for name, one, some, other, rest in (("one", "h200", 6, "b200", 4), ("two", "b200", 4, "h200", 6))
    ]
    jobs = [queue.submit(draft) for draft in crossed]
    queue.take()
    assert [queue.world.job(job).queues for job in jobs] == [False, True]
    queue.world.work()
    queue.take()
    assert queue.world.job(jobs[1]).queues
    cancel(queue.world.ports, jobs[0], Wish(ANN))
    queue.take()
    assert not queue.world.job(jobs[1]).queues


def test_one_that_is_canceled_while_it_queues_ends_and_lets_the_next_one_go(queue: Queue) -> None:
    first, second = queue.submit(wanting(8, name="first")), queue.submit(wanting(8, name="second"))
    cancel(queue.world.ports, first, Wish(ANN))
    queue.take()
    assert queue.world.job(first).state is JobState.FINISHING
    assert not queue.world.job(second).queues


def test_nothing_is_read_or_written_while_the_feed_stands_still(queue: Queue) -> None:
    holder, waits = queue.submit(wanting(8)), queue.submit(wanting(8, name="waits"))
    queue.take()
    queue.hold((holder, 8))
    queue.take()
    before, revision = len(queue.world.feed()), queue.world.job(waits).revision
    for _ in range(5):
        queue.take()
    assert (len(queue.world.feed()), queue.world.job(waits).revision) == (before, revision)


def test_a_job_of_another_queue_and_all_of_them_where_kueue_decides_go_at_once(queue: Queue, world: World) -> None:
    world.fleet.given = replace(world.fleet.given, has_queues=True)
    other = queue.submit(replace(wanting(64), queue="team-a"), allow_unsatisfiable=True)
    queue.take()
    assert not world.job(other).queues
    own = queue.submit(wanting(64), allow_unsatisfiable=True)
    queue.take()
    assert world.job(own).queues
    queue.hear("Kueue")
    queue.turns.take()
    assert not world.job(own).queues


def test_with_a_queue_of_ours_by_setting_kueue_decides_nothing(world: World) -> None:
    queue = Queue(world, Queueing.ON)
    queue.hear("Kueue")
    queue.see(NODE)
    own = queue.submit(wanting(64), allow_unsatisfiable=True)
    queue.turns.take()
    assert world.job(own).queues


def test_nobody_goes_while_the_fleet_was_not_heard_and_all_go_where_it_never_tells_of_nodes(world: World) -> None:
    queue = Queue(world)
    job = queue.submit(wanting(1))
    assert world.sql.renew_observer("home", holder="me", at=world.clock(), lease_s=15)
    queue.turns.take()
    assert world.job(job).queues
    queue.hear()
    for _ in range(30):
        queue.take()
    found = world.job(job)
    assert not found.queues
    assert found.attempt.queue is not None
    assert "can't be seen" in found.attempt.queue.decision


def test_jobs_that_wait_when_the_queue_is_turned_off_go_at_once(queue: Queue, world: World) -> None:
    job = queue.submit(wanting(64), allow_unsatisfiable=True)
    queue.take()
    world.ports = replace(world.ports, queueing=Queueing.OFF)
    after = Turns(world.ports, Watcher("home", "me"))
    after.take()
    assert not world.job(job).queues


def test_who_lost_the_fleet_decides_nothing(queue: Queue) -> None:
    job = queue.submit(wanting(1))
    queue.world.sql.renew_observer("home", holder="me", at=queue.world.clock(), lease_s=0)
    queue.world.clock.forward(1)
    assert queue.world.sql.renew_observer("home", holder="other", at=queue.world.clock(), lease_s=15)
    with pytest.raises(Superseded):
        queue.turns.take()
    assert queue.world.job(job).queues


def test_a_retried_job_queues_again(queue: Queue, world: World) -> None:
    from starforge.domain.actions.retry import Again, retry

    job = queue.submit(wanting(1))
    queue.take()
    cancel(world.ports, job, Wish(ANN))
    world.settle()
    again = retry(world.ports, job, Again(ANN)).job
    assert again.queues
    queue.take()
    assert not world.job(job).queues
