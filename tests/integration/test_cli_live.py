"""Subscriptions of the command line against a real server that cuts: nothing lost or doubled, no endless tries."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from starforge.cli.documents import FOLLOW_JOB, FOLLOW_LOGS
from starforge.cli.gateway import Gateway
from starforge.cli.live import Live
from starforge.cli.outage import Patience
from starforge.domain.errors import Defect, Outside, StarForgeError, Unauthenticated
from tests.integration.scripted_gateway import PATIENCE_S, Cut, Ended, Json, Script, serve, stream
from tests.unit.cli.api_answers import a_job, a_line, change, chunk

QUICK = Patience(first_wait=0.001, longest_wait=0.01)
LAST = 40


@pytest.fixture
def script() -> Iterator[Script]:
    with serve(Script()) as serving:
        yield serving


async def _follow(live: Live, document: str, variables: Json) -> list[Json]:
    def is_last(step: Json) -> bool:
        return bool(step.get("end") or (step.get("job") or {}).get("ended"))

    return [step async for step in live.follow(document, variables, is_last=is_last)]


def follow(script: Script, document: str = FOLLOW_LOGS, patience: Patience = QUICK, **variables: Any) -> list[Json]:
    with Gateway(script.url, "good") as gateway:
        return asyncio.run(_follow(Live(gateway, patience=patience), document, {"id": "job-1", **variables}))


def numbers(steps: list[Json]) -> list[int]:
    return [line["number"] for step in steps for line in step["lines"] or []]


async def log_that_is_cut(how: Exception, after: str | None = None, **_: object) -> AsyncIterator[Json]:
    """Lines up to LAST in chunks of three; every connection ends after two chunks in the given way."""
    number = int(after or 0)
    for _chunk in range(2):
        until = min(number + 3, LAST)
        yield chunk(until, [a_line(one) for one in range(number + 1, until + 1)], end=until == LAST)
        number = until
    raise how


@pytest.mark.parametrize(
    "how",
    [
        Cut(None), Cut(1012), Cut(1013), Cut(4499), Cut(1001),
        Ended("UNAVAILABLE", retryable=True), Ended("THROTTLED", retryable=True),
    ],
    ids=str,
)  # fmt: skip
def test_after_a_cut_it_goes_on_where_it_was(script: Script, how: Exception) -> None:
    script.fields["jobLogs"] = lambda **given: log_that_is_cut(how, **given)
    assert numbers(follow(script)) == list(range(1, LAST + 1))
    assert [asked.get("after") for asked in script.arguments("jobLogs")] == [None, *map(str, range(6, LAST, 6))]


def test_a_tail_is_asked_for_only_once(script: Script) -> None:
    first = stream(chunk(7, [a_line(7)]), Cut(None))
    second = stream(chunk(8, [a_line(8)], end=True))
    script.fields["jobLogs"] = lambda after=None, **_: second if after else first
    assert numbers(follow(script, tail=1)) == [7, 8]
    asked = script.arguments("jobLogs")
    assert [one.get("tail") for one in asked] == [1, None]
    assert asked[1]["after"] == "7"


def test_a_bookmark_moves_the_cursor(script: Script) -> None:
    first = stream(chunk(7, [a_line(7)]), chunk(9, None), Cut(None))
    script.fields["jobLogs"] = lambda after=None, **_: stream(chunk(10, [], end=True)) if after == "9" else first
    assert numbers(follow(script)) == [7]


def test_a_slow_consumer_goes_on_from_the_cursor_that_it_is_given(script: Script) -> None:
    first = stream(chunk(3, [a_line(3)]), Ended("SLOW_CONSUMER", retryable=True, cursor="5"))
    script.fields["jobLogs"] = lambda after=None, **_: stream(chunk(6, [], end=True)) if after == "5" else first
    assert len(follow(script)) == 2


def test_an_expired_cursor_makes_a_job_start_with_a_snapshot_again(script: Script) -> None:
    starts = iter(
        [
            stream(change(1, a_job()), Cut(None)),
            stream(Ended("CURSOR_EXPIRED")),
            stream(change(9, a_job(state="SUCCEEDED"))),
        ]
    )
    script.fields["job"] = lambda **_: next(starts)
    steps = follow(script, FOLLOW_JOB)
    assert [step["job"]["state"] for step in steps] == ["RUNNING", "SUCCEEDED"]
    assert [asked.get("after") for asked in script.arguments("job")] == [None, "1", None]


def test_a_stream_that_is_completed_too_early_is_a_cut(script: Script) -> None:
    starts = iter([stream(change(1, a_job())), stream(change(2, a_job(state="FAILED")))])
    script.fields["job"] = lambda **_: next(starts)
    assert [step["job"]["state"] for step in follow(script, FOLLOW_JOB)] == ["RUNNING", "FAILED"]


@pytest.mark.parametrize(
    ("how", "kind"),
    [(Cut(4400), Defect), (Cut(4500), Defect), (Ended("INTERNAL_SERVER_ERROR"), Defect), (Cut(4403), Unauthenticated)],
    ids=str,
)
def test_what_is_for_good_is_not_tried_again(script: Script, how: Exception, kind: type[StarForgeError]) -> None:
    script.fields["jobLogs"] = lambda **_: stream(chunk(1, [a_line(1)]), how)
    with pytest.raises(kind):
        follow(script)
    assert len(script.arguments("jobLogs")) == 1


@pytest.mark.parametrize("how", [Cut(None), Ended("UNAVAILABLE", retryable=True)], ids=str)
def test_a_cut_before_anything_came_begins_anew(script: Script, how: Exception) -> None:
    starts = iter([stream(how), stream(chunk(8, [a_line(8)], end=True))])
    script.fields["jobLogs"] = lambda **_: next(starts)
    assert numbers(follow(script, tail=1)) == [8]
    assert [one["tail"] for one in script.arguments("jobLogs")] == [1, 1]


def test_a_gateway_that_stays_away_is_given_up(script: Script) -> None:
    begin = stream(chunk(1, [a_line(1)]), Cut(None))
    script.fields["jobLogs"] = lambda after=None, **_: stream(Cut(1013)) if after else begin
    with pytest.raises(Outside):
        follow(script, patience=Patience(first_wait=0.001, longest_wait=0.01, give_up=0.05))
    assert len(script.arguments("jobLogs")) > 2


def test_a_silent_gateway_is_taken_for_gone(script: Script) -> None:
    over = threading.Event()

    async def silent() -> AsyncIterator[Json]:
        yield chunk(1, [a_line(1)])
        await asyncio.to_thread(over.wait, PATIENCE_S)

    script.fields["jobLogs"] = lambda after=None, **_: stream(chunk(2, [a_line(2)], end=True)) if after else silent()
    try:
        assert numbers(follow(script, patience=Patience(silence=1, first_wait=0.001))) == [1, 2]
    finally:
        over.set()


def test_a_wrong_token(script: Script) -> None:
    with Gateway(script.url, "bad") as gateway, pytest.raises(Unauthenticated, match="FORGE_TOKEN"):
        asyncio.run(_follow(Live(gateway), FOLLOW_LOGS, {"id": "job-1"}))


def test_nobody_there() -> None:
    with Gateway("http://127.0.0.1:1") as gateway, pytest.raises(Outside, match="can't be reached"):
        asyncio.run(_follow(Live(gateway), FOLLOW_LOGS, {"id": "job-1"}))


def test_the_outage_is_told_once_and_its_end_too(script: Script) -> None:
    starts = iter([stream(change(1, a_job()), Cut(1012)), *(stream(Cut(1012)) for _ in range(3))])
    end = change(2, a_job(state="SUCCEEDED"))
    script.fields["job"] = lambda **_: next(starts, stream(end))
    notes: list[str] = []
    with Gateway(script.url) as gateway:
        asyncio.run(_follow(Live(gateway, notes.append, QUICK), FOLLOW_JOB, {"id": "job-1"}))
    assert notes == ["The connection to the gateway was cut (1012). Trying again …", "The connection is back."]
