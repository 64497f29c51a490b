"""What the watch puts together out of lists and changes."""

from starforge.adapters.kube.watch.board import Board
from starforge.adapters.kube.watch.eventdesk import WAIT_S, EventDesk
from starforge.adapters.kube.watch.messages import Changed, Kind, Listed
from starforge.adapters.kube.watch.timers import Timers
from starforge.adapters.kube.watch.uids import Uids
from starforge.domain.names import JobId, RunKey
from starforge.domain.observation import RunPhase, RunSeen
from tests.unit.kube.kube_objects import event, pod, raycluster, rayjob
from tests.unit.kube.kube_orders import AT, RUN


def board() -> Board:
    return Board(Uids())


def told(of: Board) -> list[RunSeen]:
    return of.take_dirty(AT) if of.dirty else []


def filled() -> Board:
    it = board()
    it.listed(Listed(Kind.RAYJOB, [rayjob()]))
    it.listed(Listed(Kind.POD, [pod("a", node_type="head"), pod("b", first=1)]))
    assert told(it)
    return it


def test_nothing_is_told_before_rayjobs_and_pods_were_listed() -> None:
    it = board()
    it.listed(Listed(Kind.POD, [pod("a", node_type="head")]))
    assert told(it) == []
    it.listed(Listed(Kind.RAYJOB, [rayjob()]))
    (seen,) = told(it)
    assert (seen.phase, [each.uid for each in seen.pods]) == (RunPhase.WAITING, ["a"])


def test_a_list_that_tells_nothing_new_is_not_told() -> None:
    it = filled()
    it.listed(Listed(Kind.RAYJOB, [rayjob()]))
    it.listed(Listed(Kind.POD, [pod("a", node_type="head"), pod("b", first=1)]))
    assert told(it) == []


def test_every_change_gives_the_whole_run() -> None:
    it = filled()
    it.changed(Changed(Kind.RAYJOB, rayjob(version=2, job="RUNNING", deployment="Running")))
    (seen,) = told(it)
    assert (seen.phase, [each.machine for each in seen.pods]) == (RunPhase.RUNNING, [0, 1])


def test_a_run_is_absent_only_after_its_deletion_was_seen() -> None:
    it = filled()
    it.changed(Changed(Kind.RAYJOB, rayjob(version=3), deleted=True))
    (seen,) = told(it)
    assert (seen.phase, len(seen.pods)) == (RunPhase.ABSENT, 2)
    assert [each["metadata"]["uid"] for each in it.listed(Listed(Kind.POD, []))] == ["a", "b"]
    (seen,) = told(it)
    assert (seen.phase, seen.pods) == (RunPhase.ABSENT, ())
    it.listed(Listed(Kind.RAYJOB, []))
    assert told(it) == []


def test_a_rayjob_that_a_complete_list_lacks_is_gone() -> None:
    it = filled()
    it.listed(Listed(Kind.RAYJOB, []))
    assert [each.phase for each in told(it)] == [RunPhase.ABSENT]


def test_a_pod_that_is_seen_before_its_rayjob_tells_of_no_deletion() -> None:
    """Its RayJob may have been made after the RayJobs were listed, and the other watch be late."""
    it = board()
    it.listed(Listed(Kind.RAYJOB, []))
    it.listed(Listed(Kind.POD, []))
    it.changed(Changed(Kind.POD, pod("a", node_type="head")))
    assert told(it) == []
    it.changed(Changed(Kind.RAYJOB, rayjob()))
    assert [(each.phase, len(each.pods)) for each in told(it)] == [(RunPhase.WAITING, 1)]


def test_a_list_that_may_be_older_than_a_pod_tells_of_no_deletion() -> None:
    it = board()
    it.listed(Listed(Kind.POD, [pod("a", node_type="head")]))
    it.listed(Listed(Kind.RAYJOB, []))
    assert told(it) == []
    it.listed(Listed(Kind.RAYJOB, []))
    assert [(each.phase, len(each.pods)) for each in told(it)] == [(RunPhase.ABSENT, 1)]
    it.changed(Changed(Kind.POD, pod("a", node_type="head"), deleted=True))
    assert [(each.phase, each.pods) for each in told(it)] == [(RunPhase.ABSENT, ())]


def test_a_pod_keeps_its_machine_when_another_is_replaced() -> None:
    it = filled()
    it.changed(Changed(Kind.POD, pod("c", created="2026-11-29T12:00:05Z", first=1)))
    told(it)
    it.changed(Changed(Kind.POD, pod("b", first=1), deleted=True))
    (seen,) = told(it)
    assert {each.uid: each.machine for each in seen.pods} == {"a": 0, "c": 2}


def test_a_raycluster_is_told_of_when_it_says_something_new_about_what_fails() -> None:
    it = filled()
    it.changed(Changed(Kind.RAYCLUSTER, raycluster()))
    (seen,) = told(it)
    assert seen.raycluster is not None
    assert seen.raycluster.failure is None
    it.changed(Changed(Kind.RAYCLUSTER, raycluster(version=2)))
    assert told(it) == []
    it.changed(Changed(Kind.RAYCLUSTER, raycluster(version=3, failure="no")))
    (seen,) = told(it)
    assert seen.raycluster is not None
    assert seen.raycluster.failure is not None
    assert seen.raycluster.failure.message == "no"
    it.changed(Changed(Kind.RAYCLUSTER, raycluster(version=4)))
    assert [each.raycluster and each.raycluster.failure for each in told(it)] == [None]


def test_a_pod_that_went_is_told_once_as_it_was_last() -> None:
    it = filled()
    evicted = pod("b", first=1, version=2)
    evicted["status"] = {"phase": "Failed", "reason": "Evicted"}
    it.changed(Changed(Kind.POD, evicted, deleted=True))
    (seen,) = told(it)
    assert [(each.uid, each.reason, each.machine) for each in seen.gone] == [("b", "Evicted", 1)]
    assert [each.uid for each in seen.pods] == ["a"]
    it.changed(Changed(Kind.RAYJOB, rayjob(version=2)))
    assert [each.gone for each in told(it)] == [()]
    it.listed(Listed(Kind.POD, []))
    assert [[each.uid for each in seen.gone] for seen in told(it)] == [["a"]]


def test_objects_of_others_are_ignored() -> None:
    it = filled()
    stranger = pod("x")
    stranger["metadata"]["labels"] = {"app": "x"}
    it.changed(Changed(Kind.POD, stranger))
    assert told(it) == []


def test_a_submitter_job_belongs_to_its_owners_run() -> None:
    uids = Uids()
    it = Board(uids)
    early, late = (
        {"metadata": {"name": "j", "uid": uid, "ownerReferences": [{"uid": "job-uid", "name": "try"}]}}
        for uid in ("early", "late")
    )
    it.listed(Listed(Kind.JOB, [early]))
    assert uids.run("early") is None
    it.listed(Listed(Kind.RAYJOB, [rayjob()]))
    it.changed(Changed(Kind.JOB, late))
    assert (uids.run("early"), uids.run("late")) == (RUN, RUN)


def test_an_event_is_told_once_per_count() -> None:
    uids = Uids()
    uids.add("a", RUN)
    desk = EventDesk(uids)
    found = [desk.take(event("a", count=count), 0.0) for count in (1, 1, 2, 2)]
    assert [each and each.count for each in found] == [1, None, 2, None]


def test_an_event_waits_for_its_object_for_a_while() -> None:
    uids = Uids()
    desk = EventDesk(uids)
    assert desk.take(event("a", uid="one"), 0.0) is None
    assert desk.take(event("b", uid="two"), 0.0) is None
    uids.add("a", RUN)
    assert [each.uid for each in desk.matched(1.0)] == ["one"]
    assert list(desk.matched(WAIT_S + 1)) == []
    uids.add("b", RUN)
    assert list(desk.matched(WAIT_S + 2)) == []


def test_events_of_what_is_gone_and_of_other_kinds() -> None:
    uids = Uids()
    uids.add("a", RUN)
    uids.gone("a")
    desk = EventDesk(uids)
    assert desk.take(event("a"), 0.0) is not None
    assert desk.take(event("a", uid="other", kind="Node"), 0.0) is None


def test_what_went_is_forgotten_in_the_end() -> None:
    uids = Uids()
    for number in range(20_001):
        uids.add(str(number), RunKey(JobId("job"), number))
        uids.gone(str(number))
    assert uids.run("0") is None
    assert uids.run("20000") == RunKey(JobId("job"), 20_000)


def test_a_timer_that_is_set_does_not_slip() -> None:
    timers = Timers()
    timers.set("b", 2.0)
    timers.set("a", 1.0)
    timers.set("a", 9.0)
    assert timers.wait_s(0.5, 10) == 0.5
    assert timers.due(2.5) == ["a", "b"]
    assert timers.due(99) == []
    assert timers.wait_s(0, 10) == 10
