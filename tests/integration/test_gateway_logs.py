"""Logs over a real gateway: followed while they are written, resumed anywhere, and read in pages."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from starforge.domain.actions.move_logs import move_logs
from starforge.domain.errors import ObjectStoreUnavailable
from starforge.domain.names import JobId, RunKey
from starforge.domain.queries import LogRange
from tests.integration.gateway import PATIENCE_S, Gateway, Refused, platform

FOLLOW = """
subscription($id: ID!, $after: String, $tail: Int, $source: String, $attempt: Int) {
  jobLogs(id: $id, after: $after, tail: $tail, source: $source, attempt: $attempt) {
    cursor kind end source { key state lines } lines { number text }
  }
}
"""
PAGE = """
query($id: ID!, $source: String, $first: Int, $after: String, $last: Int, $before: String, $fromLine: Int) {
  job(id: $id) {
    logs(source: $source, first: $first, after: $after, last: $last, before: $before, fromLine: $fromLine) {
      totalCount source { key } nodes { number text } edges { cursor node { number } }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    }
  }
}
"""
SOURCES = "query($id: ID!) { job(id: $id) { logSources { key kind state lines sha256 bytes download { url } } } }"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    cache = tmp_path_factory.getbasetemp() / "runner"
    with platform(tmp_path_factory.mktemp("platform"), cache) as there, there.gateway() as running:
        yield running


@pytest.fixture(scope="module")
def ended(gateway: Gateway) -> str:
    """A job whose logs are archived."""
    job = gateway.submit(seconds=40)
    gateway.finished(job)
    return job


def page(gateway: Gateway, job: str, **arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = gateway.ask(PAGE, id=job, **arguments)["job"]["logs"]
    return found


def every_line(gateway: Gateway, job: str, source: str = "driver") -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = page(gateway, job, first=1000, source=source)["nodes"]
    return lines


def lines_of(chunks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for chunk in chunks for line in chunk["lines"] or []]


def follow(gateway: Gateway, job: str, **arguments: Any) -> list[dict[str, Any]]:
    """Every chunk to the end of the log."""
    with gateway.live(FOLLOW, id=job, **arguments) as live:
        return list(live)


def test_a_follow_from_before_the_first_pod_gives_every_line_once(gateway: Gateway) -> None:
    job = gateway.submit(seconds=40)
    chunks = follow(gateway, job)
    assert [chunk["end"] for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert len([chunk for chunk in chunks if chunk["lines"]]) > 1, "it was not live"
    gateway.finished(job)
    assert lines_of(chunks) == every_line(gateway, job)
    assert [line["number"] for line in lines_of(chunks)] == list(range(1, chunks[-1]["source"]["lines"] + 1))
    assert all("::starforge" not in line["text"] for line in lines_of(chunks))


def test_a_follow_resumes_by_any_cursor_while_the_log_grows(gateway: Gateway) -> None:
    job = gateway.submit(seconds=60)
    held: list[dict[str, Any]] = []
    cursor, ended = None, False
    while not ended:
        with gateway.live(FOLLOW, id=job, after=cursor) as live:
            chunk = live.until(lambda chunk: chunk["lines"] or chunk["end"])[-1]
        held += chunk["lines"]
        cursor, ended = chunk["cursor"], chunk["end"]
    gateway.finished(job)
    assert held == every_line(gateway, job)


def test_a_follow_resumes_from_the_cursor_of_a_page(gateway: Gateway, ended: str) -> None:
    lines = every_line(gateway, ended)
    cursor = page(gateway, ended, first=3)["pageInfo"]["endCursor"]
    chunks = follow(gateway, ended, after=cursor)
    assert lines_of(chunks) == lines[3:]
    assert page(gateway, ended, first=1000, after=chunks[-1]["cursor"])["nodes"] == []


@pytest.mark.parametrize("tail", [0, 1, 5, 1000])
def test_a_tail(gateway: Gateway, ended: str, tail: int) -> None:
    lines = every_line(gateway, ended)
    assert len(lines) < 1000
    assert lines_of(follow(gateway, ended, tail=tail)) == (lines[-tail:] if tail else [])


def test_the_log_of_a_container(gateway: Gateway, ended: str) -> None:
    sources = gateway.ask(SOURCES, id=ended)["job"]["logSources"]
    container = next(source for source in sources if source["kind"] == "CONTAINER")
    assert lines_of(follow(gateway, ended, source=container["key"])) == every_line(gateway, ended, container["key"])
    assert len(every_line(gateway, ended, container["key"])) == container["lines"] > 0


def test_a_log_that_never_came_ends_with_its_job(gateway: Gateway) -> None:
    job = gateway.submit(outcome="IMAGE_PULL", deadlines={"preRunningSeconds": 3})
    chunks = follow(gateway, job)
    assert chunks[-1] == {"cursor": chunks[-1]["cursor"], "kind": "UPDATED", "end": True, "source": None, "lines": []}
    assert gateway.finished(job)["outcome"] == "FAILED"


@pytest.mark.parametrize(
    "arguments",
    [{"tail": -1}, {"tail": 1001}, {"attempt": 0}, {"attempt": -1}],
)
def test_arguments_that_are_wrong(gateway: Gateway, ended: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        follow(gateway, ended, **arguments)
    assert refused.value.code == "BAD_USER_INPUT"


def test_tail_does_not_go_with_after(gateway: Gateway, ended: str) -> None:
    with pytest.raises(Refused) as refused:
        follow(gateway, ended, tail=1, after=page(gateway, ended, first=1)["pageInfo"]["endCursor"])
    assert refused.value.code == "BAD_USER_INPUT"


def test_a_cursor_of_another_log_is_refused(gateway: Gateway, ended: str) -> None:
    cursor = page(gateway, ended, first=1)["pageInfo"]["endCursor"]
    with pytest.raises(Refused) as refused:
        follow(gateway, ended, after=cursor, source="pod/x/y")
    assert refused.value.code == "CURSOR_INVALID"


def test_pages_forward_and_backward_give_every_line_once(gateway: Gateway, ended: str) -> None:
    lines = every_line(gateway, ended)
    forward: list[dict[str, Any]] = []
    cursor, more = None, True
    while more:
        found = page(gateway, ended, first=7, after=cursor)
        assert found["pageInfo"]["hasPreviousPage"] == bool(forward)
        forward += found["nodes"]
        cursor, more = found["pageInfo"]["endCursor"], found["pageInfo"]["hasNextPage"]
    backward: list[dict[str, Any]] = []
    cursor, more = None, True
    while more:
        found = page(gateway, ended, last=7, before=cursor)
        assert found["totalCount"] == len(lines)
        backward = found["nodes"] + backward
        cursor, more = found["pageInfo"]["startCursor"], found["pageInfo"]["hasPreviousPage"]
    assert forward == backward == lines


def test_a_jump_into_a_log(gateway: Gateway, ended: str) -> None:
    assert [line["number"] for line in page(gateway, ended, first=2, fromLine=5)["nodes"]] == [5, 6]
    assert page(gateway, ended, first=2, fromLine=5)["pageInfo"]["hasPreviousPage"]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"first": 1001},
        {"first": 0},
        {"last": 2, "fromLine": 1},
        {"first": 1, "fromLine": 0},
        {"first": 1, "last": 1},
    ],
)
def test_pages_that_can_not_be(gateway: Gateway, ended: str, arguments: dict[str, Any]) -> None:
    answer = gateway.answer(PAGE, id=ended, **arguments)
    assert answer["data"] == {"job": {"logs": None}}
    assert answer["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"


def test_the_page_of_a_log_that_is_not_there_is_empty(gateway: Gateway, ended: str) -> None:
    found = page(gateway, ended, first=10, source="pod/none/none")
    assert (found["nodes"], found["source"], found["totalCount"]) == ([], None, 0)


def test_an_archived_log_can_be_downloaded_whole(gateway: Gateway, ended: str) -> None:
    sources = gateway.ask(SOURCES, id=ended)["job"]["logSources"]
    assert {source["state"] for source in sources} == {"CLOSED"}
    for source in sources:
        text = httpx.get(source["download"]["url"], timeout=PATIENCE_S).text
        lines = every_line(gateway, ended, source["key"])
        assert text == "".join(f"{line['text']}\n" for line in lines)
        assert (len(text.encode()), len(lines)) == (source["bytes"], source["lines"])


SEARCH = 'query($id: ID!) { job(id: $id) { name logSearch(query: "1", first: 100) { nodes { line { number } } } } }'
LINES = "logs(first: 5) { totalCount }"
BOTH = f"query($a: ID!, $b: ID!) {{ a: job(id: $a) {{ {LINES} }} b: job(id: $b) {{ {LINES} }} }}"
NAMED_PAGE = "query($id: ID!) { job(id: $id) { name logs(first: 5) { nodes { number text } } } }"


Moved = tuple[str, list[dict[str, Any]], list[dict[str, Any]], dict[str, Any]]


@pytest.fixture(scope="module")
def moved(gateway: Gateway) -> Moved:
    """A job whose lines are in the object store, and its lines, chunks and matches as they were when they were rows."""
    job = gateway.submit(seconds=40)
    gateway.finished(job)
    before = every_line(gateway, job), follow(gateway, job), gateway.ask(SEARCH, id=job)
    move_logs(gateway.parts.ports, seconds=PATIENCE_S)
    rows = gateway.parts.ports.store.log_lines(LogRange(RunKey(JobId(job), 1), "driver", 1, 10_000))
    assert (len(rows), len(before[0]) > 0) == (0, True)
    return job, *before


def test_a_log_that_was_moved_is_read_as_before(gateway: Gateway, moved: Moved) -> None:
    job, lines, chunks, matches = moved
    assert every_line(gateway, job) == lines
    assert lines_of(follow(gateway, job)) == lines_of(chunks) == lines
    assert gateway.ask(SEARCH, id=job) == matches
    test_pages_forward_and_backward_give_every_line_once(gateway, job)
    test_an_archived_log_can_be_downloaded_whole(gateway, job)
    cursors = [edge["cursor"] for edge in page(gateway, job, first=1000)["edges"]]
    for number in (1, 2, len(cursors) // 2, len(cursors) - 1, len(cursors)):
        assert page(gateway, job, first=2, after=cursors[number - 1])["nodes"] == lines[number : number + 2]
        assert lines_of(follow(gateway, job, after=cursors[number - 1])) == lines[number:]
    assert lines_of(follow(gateway, job, tail=3)) == lines[-3:]


def test_moved_lines_while_the_object_store_is_away_are_an_error_of_their_field(
    gateway: Gateway, moved: Moved, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> bytes:
        raise ObjectStoreUnavailable("The object store at s3.test could not be reached.")

    job = moved[0]
    live = gateway.submit(seconds=400)
    gateway.running(live)
    with monkeypatch.context() as patch:
        patch.setattr(type(gateway.parts.ports.objects), "read", away)
        for query, field in ((NAMED_PAGE, "logs"), (SEARCH, "logSearch")):
            answer = gateway.answer(query, id=job)
            assert answer["data"] == {"job": {"name": "train", field: None}}
            (error,) = answer["errors"]
            assert (error["path"], error["extensions"]["code"]) == (["job", field], "UNAVAILABLE")
            assert error["extensions"]["retryable"]
            assert "of the log driver" in error["message"]
            assert "The object store at s3.test could not be reached." in error["message"]
        answer = gateway.answer(BOTH, a=job, b=live)
        assert (answer["data"]["a"], answer["data"]["b"]["logs"] is not None) == ({"logs": None}, True)
        with pytest.raises(Refused) as refused:
            follow(gateway, job)
        assert refused.value.code == "UNAVAILABLE"
    assert lines_of(follow(gateway, job)) == moved[1]


def test_a_follower_of_a_log_that_is_moved_meanwhile_gets_every_line_once(gateway: Gateway) -> None:
    job = gateway.submit(seconds=40)
    with gateway.live(FOLLOW, id=job) as live:
        chunks = live.until(lambda chunk: bool(chunk["lines"]))
        gateway.finished(job)
        move_logs(gateway.parts.ports, seconds=PATIENCE_S)
        chunks += list(live)
    assert lines_of(chunks) == every_line(gateway, job)
    assert lines_of(follow(gateway, job, after=chunks[0]["cursor"])) == lines_of(chunks[1:])
