"""Reasons: whose move it is, and how old a story is."""

from dataclasses import replace

import pytest

from starforge.domain.reason import Evidence, EvidenceSource, ReasonCode, ReasonOwner, keep_since, reason, same_story
from starforge.domain.refusal import BY_EXIT_CODE, refusal
from starforge.domain.wire import RefusedWhy
from tests.unit.examples import AT, later

WHY = reason(ReasonCode.UNSCHEDULABLE, "No node.", AT, advice="Wait.")


@pytest.mark.parametrize("code", ReasonCode)
def test_every_code_has_an_owner(code: ReasonCode) -> None:
    assert reason(code, "x", AT).whose in ReasonOwner


def test_a_users_mistake_is_not_worth_a_retry_and_a_full_cluster_is() -> None:
    assert (reason(ReasonCode.USER_CODE, "x", AT).whose, reason(ReasonCode.USER_CODE, "x", AT).retryable) == (
        ReasonOwner.USER,
        False,
    )
    assert (WHY.whose, WHY.retryable) == (ReasonOwner.CLUSTER, True)


def test_a_story_is_as_old_as_when_it_was_first_told() -> None:
    proof = Evidence(EvidenceSource.POD_CONDITION, "0/3", later(9))
    again = reason(ReasonCode.UNSCHEDULABLE, "No node.", later(9), advice="Wait.", evidence=(proof,))
    assert keep_since(again, WHY) is WHY
    assert keep_since(again, None) is again
    assert keep_since(replace(again, message="Two nodes."), WHY).since == later(9)


def test_evidence_is_bounded() -> None:
    many = tuple(Evidence(EvidenceSource.LOG, str(number), AT) for number in range(30))
    assert len(reason(ReasonCode.INTERNAL, "x", AT, evidence=many).evidence) == 10


def test_the_same_story_whatever_shows_it() -> None:
    assert same_story(None, None)
    assert not same_story(WHY, None)
    assert same_story(WHY, replace(WHY, since=later(1), evidence=()))
    assert not same_story(WHY, replace(WHY, advice="Ask."))


@pytest.mark.parametrize("why", RefusedWhy)
def test_every_refusal_has_a_reason_and_an_exit_code(why: RefusedWhy) -> None:
    found = refusal(why, "it says so", EvidenceSource.LOG, AT)
    assert found.evidence[0].text == "it says so"
    assert why in BY_EXIT_CODE.values()
