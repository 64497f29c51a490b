"""The list and watch of one kind, against a server that is as unpleasant as a real one."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from starforge.adapters.kube.watch.backoff import Backoff
from starforge.adapters.kube.watch.listwatch import ListWatch, Source
from starforge.adapters.kube.watch.messages import Changed, Heard, Inbox, Kind, Listed, Message
from starforge.adapters.kube.watch.streams import Streams
from tests.unit.kube.kube_objects import pod
from tests.unit.kube.kube_server import Answer, Query, Server, changes, listed, serving, status

PATH = "/api/v1/namespaces/ns/pods"
STAY = changes(then="stay")


@contextmanager
def watching(
    lists: list[Answer], watches: list[Answer], source: Source
) -> Iterator[tuple[Server, Callable[[], Message]]]:
    """A running watch over a server that gives these answers in turn, and what the watch tells next."""

    def answer(_method: str, _path: str, query: Query) -> Answer:
        turns = watches if "watch" in query else lists
        return turns.pop(0) if len(turns) > 1 else turns[0]

    with serving(answer) as server:
        streams = Streams()
        inbox = Inbox(streams.halted)
        quick = Backoff(first_s=0.01, longest_s=0.02)
        thread = threading.Thread(target=ListWatch(server.api(), source, inbox, streams, backoff=quick).run)
        thread.start()
        try:
            yield server, lambda: inbox.queue.get(timeout=10)
        finally:
            streams.halt()
            thread.join(5)
            assert not thread.is_alive()


PODS = Source(Kind.POD, PATH, "starforge.io/managed=true")
EVENTS = Source(Kind.EVENT, PATH, resumable=False)


def versions(server: Server) -> list[str]:
    return [query["resourceVersion"] for _, _, query in server.asked if "watch" in query]


def test_lists_every_page_and_then_watches_from_there() -> None:
    lists = [listed(pod("a"), more="page2"), listed(pod("b"), version="11")]
    with watching(lists, [changes(("ADDED", pod("c", version=12)), then="stay")], PODS) as (server, told):
        first, heard, change = told(), told(), told()
        assert isinstance(first, Listed)
        assert [each["metadata"]["uid"] for each in first.objects] == ["a", "b"]
        assert heard == Heard(Kind.POD)
        assert isinstance(change, Changed)
        assert change.object["metadata"]["uid"] == "c"
        assert versions(server) == ["11"]
        assert [query.get("labelSelector") for _, _, query in server.asked] == ["starforge.io/managed=true"] * 3
        assert server.asked[2][2]["allowWatchBookmarks"] == "true"


def test_goes_on_from_the_last_version_or_bookmark() -> None:
    bookmark = ("BOOKMARK", {"metadata": {"resourceVersion": "40"}})
    watches = [changes(("DELETED", pod("a", version=12)), bookmark), STAY]
    with watching([listed(pod("a"))], watches, PODS) as (server, told):
        assert isinstance(told(), Listed)
        assert told() == Heard(Kind.POD)
        change = told()
        assert isinstance(change, Changed)
        assert change.deleted
        assert told() == Heard(Kind.POD)
        assert versions(server) == ["10", "40"]


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(changes(("ERROR", {"kind": "Status", "code": 410})), id="gone in the stream"),
        pytest.param(changes(), id="empty and closed at once"),
        pytest.param(Answer((b'{"type": "ADDED", "object"',)), id="half a line"),
        pytest.param(Answer((b'{"type": "ADDED", "object"',), then="cut"), id="cut off"),
        pytest.param(Answer((b"<html>\n",)), id="nonsense"),
        pytest.param(Answer((b"{}\n",)), id="an object without anything"),
        pytest.param(status(410), id="gone"),
    ],
)
def test_lists_again_where_a_watch_can_not_go_on(trouble: Answer) -> None:
    with watching([listed(version="10"), listed(version="20")], [trouble, STAY], PODS) as (server, told):
        found = [told()]
        while not (isinstance(found[-1], Listed) and len(found) > 1):
            found.append(told())
        assert told() == Heard(Kind.POD)
        assert versions(server) == ["10", "20"]
        assert [each.problem for each in found if isinstance(each, Heard) and each.problem] == []


def test_events_are_listed_again_each_time() -> None:
    watches = [changes(("ADDED", pod("a", version=12))), STAY]
    with watching([listed(version="10"), listed(version="20")], watches, EVENTS) as (server, told):
        kinds = [type(told()) for _ in range(5)]
        assert kinds == [Listed, Heard, Changed, Listed, Heard]
        assert versions(server) == ["10", "20"]


@pytest.mark.parametrize(
    ("trouble", "sentence"),
    [
        (status(429, message="too many requests"), "answered 429"),
        (status(500), "answered 500"),
        (status(403, message="not allowed"), "does not let StarForge watch Pods"),
        (Answer(then="cut"), "can't be reached"),
        (Answer((b"<html>proxy</html>",)), "not JSON"),
    ],
)
def test_says_what_is_wrong_and_when_it_is_well_again(trouble: Answer, sentence: str) -> None:
    with watching([trouble, listed()], [STAY], PODS) as (_, told):
        wrong = told()
        assert isinstance(wrong, Heard)
        assert sentence in (wrong.problem or "")
        assert isinstance(told(), Listed)
        assert told() == Heard(Kind.POD)


def test_comes_back_when_the_server_says() -> None:
    with watching([status(429, Retry_After="1"), listed()], [STAY], PODS) as (server, told):
        assert isinstance(told(), Heard)
        assert len(server.asked) == 1


def test_waits_longer_each_time_but_never_in_step() -> None:
    backoff = Backoff(first_s=1, longest_s=4, jitter=lambda: 0.0)
    assert [backoff.next_s() for _ in range(4)] == [0.5, 1, 2, 2]
    assert backoff.next_s(at_least=9) == 9
    backoff.reset()
    assert Backoff(first_s=1, jitter=lambda: 1.0).next_s() == 1
    assert backoff.next_s() == 0.5
