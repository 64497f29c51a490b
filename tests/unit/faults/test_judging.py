"""The judge of the table of faults finds what is wrong: a job that is stuck, started twice, or missing lines."""

from dataclasses import replace

import pytest

from tests.e2e.faults.judging import (
    IN_FLIGHT_S,
    SUCCEEDED,
    Evidence,
    Log,
    Start,
    Step,
    Verdict,
    computed,
    ended,
    judge,
    told_after,
)
from tests.unit.faults.examples import NO_CODES, a_log, evidence, lost_head
from tests.unit.faults.examples import kept as as_kept

HEAD_LOST = ended("FAILED", "HEAD_LOST")


def verdict(of: Evidence, *endings: object, may_miss: bool = False) -> Verdict:
    wanted = [one for one in (HEAD_LOST, SUCCEEDED) if not endings or one in endings]
    return judge(of, wanted, struck_at=100, shows=NO_CODES, may_miss=may_miss)


def test_a_job_that_went_on_is_right_and_whole() -> None:
    found = verdict(evidence())
    assert (found.right, found.lost, found.doubled, found.whole, found.problems) == (True, False, False, True, ())
    assert found.released_s == pytest.approx(3.0)


def test_a_job_that_never_ended_is_lost() -> None:
    found = verdict(replace(evidence(), state="RUNNING", outcome=None, released_at=None))
    assert found.lost
    assert not found.right
    assert "never ended" in found.problems[0]


def test_an_ending_needs_its_own_reason() -> None:
    assert verdict(lost_head(), HEAD_LOST).right
    assert not verdict(replace(lost_head(), code="USER_CODE"), HEAD_LOST).right
    assert not verdict(replace(lost_head(), code=None), HEAD_LOST).right
    assert not verdict(lost_head(), SUCCEEDED).right
    assert not verdict(evidence(), HEAD_LOST).right


def test_success_without_a_start_is_none() -> None:
    assert not verdict(replace(evidence(), starts=(), log=Log(archive="COMPLETE"))).right


def test_a_second_start_of_one_attempt_is_doubled() -> None:
    again = Start("b" * 32, 103.0)
    once = evidence()
    assert verdict(replace(once, starts=(*once.starts, again))).doubled
    assert not verdict(replace(once, starts=(*once.starts, again), attempts=2)).doubled


def test_what_is_left_is_counted_and_named() -> None:
    found = verdict(replace(evidence(), left=("RayJob x", "Pod y")))
    assert found.left == 2
    assert "RayJob x, Pod y" in found.problems[0]


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (lambda rows: rows[:-1], "missing at the end"),
        (lambda rows: (*rows[:2], *rows[3:]), "holes or repeats"),
        (lambda rows: (*rows[:3], rows[2], *rows[3:]), "holes or repeats"),
        (lambda rows: (*rows[:2], (3, "something else"), *rows[3:]), "line 3 is 'something else'"),
        (lambda rows: (*rows, (len(rows) + 1, rows[0][1])), "1 lines more than were printed"),
    ],
    ids=["end", "hole", "repeat", "other", "again"],
)
def test_a_log_that_is_not_what_was_printed(broken: object, says: str) -> None:
    rows = broken(evidence().log.read)  # type: ignore[operator]
    found = verdict(replace(evidence(), log=as_kept(rows)))
    assert not found.whole
    assert any(says in problem for problem in found.problems), found.problems


def test_lines_of_the_runner_are_none_of_the_code() -> None:
    texts = ("starforge: can't claim this attempt yet, trying again.", *(text for _, text in a_log(5).read))
    log = as_kept(tuple(enumerate(texts, start=1)))
    assert verdict(replace(evidence(), log=log)).whole


def test_what_is_followed_live_is_what_is_kept() -> None:
    log = evidence().log
    found = verdict(replace(evidence(), log=replace(log, live=log.live[:-1])))
    assert not found.whole
    assert "6 lines were told live, 7 are kept" in found.problems[0]


def test_the_object_is_the_log_and_has_its_checksum() -> None:
    log = evidence().log
    for broken in (replace(log, stored="else\n"), replace(log, sha256="0" * 64), replace(log, stored=None)):
        assert not verdict(replace(evidence(), log=broken)).whole
    assert not verdict(replace(evidence(), log=replace(log, archive="OPEN"))).whole


def test_a_whole_log_with_a_truncated_archive_is_not_as_promised() -> None:
    log = replace(evidence().log, archive="TRUNCATED", gaps=("The end could not be had.",))
    assert not verdict(replace(evidence(), log=log)).whole


def test_of_code_that_was_killed_only_what_was_in_flight_may_miss() -> None:
    start = Start("a" * 32, 100.0, tuple(100.0 + number for number in range(10)))
    sure = sum(at <= start.printed_at[-1] - IN_FLIGHT_S for at in (start.began_at, *start.printed_at))
    for count, whole in ((10, True), (sure, True), (sure - 1, False)):
        rows = tuple(enumerate(computed(start, 10)[:count], start=1))
        log = replace(as_kept(rows, "TRUNCATED"), gaps=("The node is gone.",))
        killed = replace(lost_head(), starts=(start,), log=log)
        assert verdict(killed, HEAD_LOST).whole is whole, count
        assert verdict(killed, HEAD_LOST, may_miss=True).whole


def test_lines_may_only_miss_if_the_archive_says_so() -> None:
    start = Start("a" * 32, 100.0, tuple(100.0 + number for number in range(10)))
    killed = replace(lost_head(), starts=(start,), log=Log(archive="COMPLETE"))
    assert not verdict(killed, HEAD_LOST, may_miss=True).whole


def test_lines_of_code_that_was_never_started() -> None:
    log = a_log(5)
    assert not verdict(replace(lost_head(), starts=(), log=log), HEAD_LOST).whole


def test_seconds_to_the_first_step_that_tells_the_reason() -> None:
    steps = (
        Step(90, "RUNNING", frozenset({"API_UNAVAILABLE"})),
        Step(101, "RUNNING", NO_CODES),
        Step(104, "RUNNING", frozenset({"OTHER", "API_UNAVAILABLE"})),
    )
    assert told_after(steps, frozenset({"API_UNAVAILABLE"}), 100) == 4
    assert told_after(steps, frozenset({"QUOTA"}), 100) is None


def test_a_reason_that_was_never_told_is_not_right() -> None:
    found = judge(evidence(), [SUCCEEDED], struck_at=100, shows=frozenset({"QUOTA"}), may_miss=False)
    assert not found.right
    assert "none of QUOTA was ever told" in found.problems[0]
