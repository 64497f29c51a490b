"""What ends a job before its clock does, and when it is looked at again for that."""

from dataclasses import replace

import pytest

from starforge.domain.denials import A_REPEAT, AT_ONCE
from starforge.domain.failfast import NETWORK_S, OPERATOR_ACTS_S, event_patience_s, pull_patience_s, spent
from starforge.domain.job import Job, JobState, advance
from starforge.domain.news import News
from starforge.domain.observation import EventSeen, FleetHeard, RunPhase, RunSeen
from starforge.domain.reason import TEXT_MAX, ObjectRef, Reason, ReasonCode, keep_since, reason
from starforge.domain.second_looks import SEEN_LATELY, SecondLooks
from tests.unit.examples import AT, a_job, later

PULL = reason(ReasonCode.IMAGE_PULL, "Pod w can't pull image x.", AT, patience_s=A_REPEAT)
FULL = reason(ReasonCode.UNSCHEDULABLE, "No node.", AT)
RUN = a_job().run


def held_by(why: Reason | None, state: JobState = JobState.PENDING) -> Job:
    job = advance(a_job(), state, AT)
    return job.with_attempt(replace(job.attempt, reason=why))


@pytest.mark.parametrize(
    ("said", "patience"),
    [
        ("example/x:1: not found", A_REPEAT),
        ("unexpected status from HEAD request to https://r/v2/x/manifests/1: 401 Unauthorized", A_REPEAT),
        ("pull access denied, repository does not exist or may require authorization", A_REPEAT),
        ("no match for platform in manifest: not found", A_REPEAT),
        ("dial tcp: lookup registry on 10.96.0.10:53: server misbehaving", NETWORK_S),
        ("unexpected status from HEAD request to https://r/v2: 503 Service Unavailable", NETWORK_S),
        ("toomanyrequests: You have reached your pull rate limit", NETWORK_S),
        ("net/http: TLS handshake timeout", NETWORK_S),
    ],
)
def test_a_pull_that_may_work_later_is_tried_more_often(said: str, patience: float) -> None:
    assert pull_patience_s("ErrImagePull", said) == patience


def test_an_event_must_be_repeated_unless_it_is_final() -> None:
    assert [event_patience_s(A_REPEAT, count) for count in (1, 3, 4, 99)] == [None, None, AT_ONCE, AT_ONCE]
    assert event_patience_s(None, 99) is None
    assert event_patience_s(AT_ONCE, 1) == AT_ONCE


def test_patience_ends_and_the_sentence_says_how_long_it_was() -> None:
    assert spent(held_by(PULL), later(A_REPEAT - 0.1)) is None
    found = spent(held_by(PULL), later(A_REPEAT))
    assert found is not None
    assert (found.code, found.since) == (ReasonCode.IMAGE_PULL, AT)
    assert found.message == f"{PULL.message} It stayed like this for 15 s, so it is not waited for any longer."
    long = spent(held_by(replace(PULL, message="x" * TEXT_MAX)), later(99))
    assert long is not None
    assert len(long.message) == TEXT_MAX
    assert long.message.endswith("any longer.")


def test_nothing_is_spent_of_what_waits_for_its_clock_or_does_not_wait() -> None:
    assert spent(held_by(FULL), later(10**6)) is None
    assert spent(held_by(None), later(10**6)) is None
    assert spent(held_by(PULL, JobState.RUNNING), later(10**6)) is None
    at_once = replace(PULL, patience_s=AT_ONCE)
    assert spent(held_by(at_once), AT) == at_once


def test_another_pod_with_the_same_trouble_buys_no_time() -> None:
    also = replace(PULL, message="Pod v can't pull image x.", since=later(9))
    assert keep_since(also, PULL) == replace(also, since=AT)
    sure = replace(PULL, patience_s=NETWORK_S)
    assert keep_since(PULL, sure) == PULL
    other = reason(ReasonCode.MISSING_REFERENCE, "Pod v misses a Secret.", later(9), patience_s=A_REPEAT)
    assert keep_since(other, PULL) is other
    assert keep_since(replace(FULL, message="Two nodes.", since=later(9)), FULL).since == later(9)


# --- second looks -----------------------------------------------------------------------------------------------------


def picture(at: float = 0) -> RunSeen:
    return RunSeen(RUN, RunPhase.WAITING, later(at))


def looks(why: Reason | None = PULL, at: float = 0) -> SecondLooks:
    found = SecondLooks()
    found.note(News(RUN, [picture(at)]), held_by(why), later(at))
    return found


def test_a_run_is_looked_at_again_when_its_patience_ends() -> None:
    found = looks()
    assert found.due(later(A_REPEAT - 0.1)) == []
    assert found.due(later(A_REPEAT)) == [picture()]
    assert found.due(later(A_REPEAT)) == []


def test_what_holds_it_until_its_clock_is_not_looked_at_again() -> None:
    assert looks(FULL).due(later(30)) == []
    assert looks(None).due(later(30)) == []
    starting = reason(ReasonCode.STARTING, "x", AT)
    assert looks(starting).due(later(OPERATOR_ACTS_S)) == [picture()]
    assert looks(starting, at=OPERATOR_ACTS_S).due(later(OPERATOR_ACTS_S)) == []


def test_an_event_that_ends_it_is_acted_on_with_the_last_picture() -> None:
    found = looks(FULL)
    of = ObjectRef("Pod", "w", "training", "w-uid")
    told = EventSeen(RUN, "e", of, "FailedMount", True, "x", 4, AT, AT)
    found.note(News(RUN, events=[told]), held_by(replace(PULL, patience_s=AT_ONCE)), later(3))
    assert found.due(later(3)) == [picture()]


def test_a_run_that_goes_on_is_forgotten() -> None:
    for job in (None, held_by(None, JobState.RUNNING)):
        found = looks()
        found.note(News(RUN, [picture()]), job, AT)
        assert found.due(later(20)) == []


def test_nothing_is_ended_by_a_picture_that_may_be_wrong_by_now() -> None:
    assert looks().due(AT + SEEN_LATELY * 2) == []
    silent = looks()
    silent.hear([FleetHeard(AT, "The Kubernetes API can't be reached.")])
    assert silent.due(later(A_REPEAT)) == []
    back = looks()
    back.hear([FleetHeard(AT, "gone"), FleetHeard(AT)])
    assert back.due(later(A_REPEAT)) == [picture()]
