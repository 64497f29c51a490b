"""Requests of every kind, whole and broken, over HTTP and as event streams."""

from dataclasses import dataclass
from typing import Any

from hypothesis import given

from tests.integration.fuzz.judge import Complaints, Tally, budget, judge_payload, judge_status, judge_text, strictly
from tests.integration.fuzz.known import Known
from tests.integration.fuzz.wire import exchange, requests
from tests.integration.gateway import Gateway

STATUSES = {200, 304, 307, 400, 401, 403, 404, 405, 406, 408, 412, 413, 415, 429, 503, 504}
"""501 and the like are nothing that we answer."""


@dataclass(frozen=True)
class Answered:
    status: int
    kind: str
    body: bytes


def answers(got: bytes) -> list[Answered]:
    """The responses in what came over a connection that is closed by now, but for those that are only interim."""
    found, rest = [], got
    while rest:
        head, _, rest = rest.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        status = int(first.split(" ")[1])
        size = int(headers.get("content-length", "0" if status < 200 else str(len(rest))))
        if status >= 200:
            found.append(Answered(status, headers.get("content-type", ""), rest[:size]))
        rest = rest[size:]
    return found


def judge(one: Answered) -> None:
    assert one.status in STATUSES, one
    judge_text(one.body.decode())
    if "json" in one.kind and one.body:
        _judge_json(one, strictly(one.body))
    elif "event-stream" not in one.kind:
        assert one.status < 500, one
    for line in one.body.split(b"\n") if "event-stream" in one.kind else ():
        if line.startswith(b"data: "):
            judge_payload(strictly(line.removeprefix(b"data: ")))


def _judge_json(one: Answered, payload: Any) -> None:
    if isinstance(payload, dict) and payload.keys() == {"ready", "problems"}:
        return
    judge_payload(payload)
    judge_status(one.status, payload)


def test_requests(gateway: tuple[Gateway, Known], watched: Complaints) -> None:
    tally = Tally()

    @budget(200)
    @given(requests())
    def each(request: bytes) -> None:
        with watched.none(request):
            for one in answers(exchange(gateway[0].port, request)):
                judge(one)
                tally[str(one.status)] += 1

    each()
    tally.show()
    assert tally["200"] > 10, "hardly anything was answered"
