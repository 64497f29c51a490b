"""The list and watch of one kind, against a server that is as unpleasant as a real one."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import pytest

from starforge.adapters.kube.client import ANSWER_S, KubeApi
from starforge.adapters.kube.settings import KubeConfig
from starforge.adapters.kube.watch import listwatch
from starforge.adapters.kube.watch.backoff import Backoff
from starforge.adapters.kube.watch.listwatch import QUICK_S, RELIST_S, ListWatch, Source
from starforge.adapters.kube.watch.messages import Changed, Heard, Inbox, Kind, Listed, Message
from starforge.adapters.kube.watch.streams import Streams
from starforge.domain.reason import ReasonCode
from tests.unit.kube.kube_objects import pod
from tests.unit.kube.kube_server import Answer, Query, Server, changes, listed, serving, status

PATH = "/api/v1/namespaces/ns/pods"
STAY = changes(then="stay")


@contextmanager
def watching(
    lists: list[Answer], watches: list[Answer], source: Source, *, clock: Callable[[], float] = time.monotonic,
    answer_s: float = ANSWER_S,
) -> Iterator[tuple[Server, Callable[[], Message]]]:  # fmt: skip
    """A running watch over a server that gives these answers in turn, and what the watch tells next."""

    def answer(_method: str, _path: str, query: Query) -> Answer:
        turns = watches if "watch" in query else lists
        return turns.pop(0) if len(turns) > 1 else turns[0]

    with serving(answer) as server:
        streams = Streams()
        inbox = Inbox(streams.halted)
        quick = Backoff(first_s=0.01, longest_s=0.02)
        api = KubeApi(KubeConfig(namespace="ns", api_server=server.url, token="secret"), answer_s=answer_s)
        watch = ListWatch(api, source, inbox, streams, backoff=quick, clock=clock)
        thread = threading.Thread(target=watch.run)
        thread.start()
        try:
            yield server, lambda: inbox.queue.get(timeout=60)
        finally:
            streams.halt()
            thread.join(60)
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


def test_a_list_that_grows_too_old_between_its_pages_is_asked_for_in_one() -> None:
    lists = [listed(pod("a"), more="page2"), status(410, "Expired"), listed(pod("b"), pod("c"), version="30")]
    with watching(lists, [STAY], PODS) as (server, told):
        first = told()
        assert isinstance(first, Listed)
        assert [each["metadata"]["uid"] for each in first.objects] == ["b", "c"]
        assert told() == Heard(Kind.POD)
        assert [("limit" in query, query.get("continue")) for _, _, query in server.asked[:3]] == [
            (True, None),
            (True, "page2"),
            (False, None),
        ]
        assert versions(server) == ["30"]


def test_what_is_not_told_whole_is_told_page_by_page() -> None:
    with watching([listed(pod("a"), more="page2"), listed(pod("b"))], [STAY], EVENTS) as (_, told):
        pages = [told(), told()]
        uids = [[each["metadata"]["uid"] for each in page.objects] for page in pages if isinstance(page, Listed)]
        assert uids == [["a"], ["b"]]
        assert told() == Heard(Kind.EVENT)


def test_lists_again_every_ten_minutes_however_well_the_watch_goes() -> None:
    clock = count(0.0, RELIST_S / 3).__next__
    lists = [listed(pod("a")), listed(pod("c"), version="20")]
    with watching(lists, [changes(("ADDED", pod("b", version=11))), STAY], PODS, clock=clock) as (server, told):
        kinds = [type(told()) for _ in range(3)]
        assert kinds == [Listed, Heard, Changed]
        again = told()
        assert isinstance(again, Listed)
        assert [each["metadata"]["uid"] for each in again.objects] == ["c"]
        assert told() == Heard(Kind.POD)
        assert versions(server) == ["10", "20"]


def test_a_stream_that_says_nothing_is_given_up_and_all_is_listed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listwatch, "QUIET_S", 0.2)
    with watching([listed(pod("a")), listed(version="20")], [STAY], PODS) as (server, told):
        assert isinstance(told(), Listed)
        assert told() == Heard(Kind.POD)
        again = told()
        assert isinstance(again, Listed)
        assert again.objects == []
        assert told() == Heard(Kind.POD)
        assert versions(server)[:2] == ["10", "20"]


def test_an_answer_that_does_not_come_is_given_up() -> None:
    with watching([Answer(then="stay"), listed()], [STAY], PODS, answer_s=0.5) as (_, told):
        wrong = told()
        assert isinstance(wrong, Heard)
        assert "can't be reached" in (wrong.problem or "")
        # On a machine that is busy enough, the next answers come too late as well.
        later = next(message for message in iter(told, None) if not isinstance(message, Heard))
        assert isinstance(later, Listed)


def test_events_are_listed_again_each_time() -> None:
    watches = [changes(("ADDED", pod("a", version=12))), STAY]
    with watching([listed(version="10"), listed(version="20")], watches, EVENTS) as (server, told):
        kinds = [type(told()) for _ in range(5)]
        assert kinds == [Listed, Heard, Changed, Listed, Heard]
        assert versions(server) == ["10", "20"]


@pytest.mark.parametrize(
    ("trouble", "sentence", "code"),
    [
        (status(429, message="too many requests"), "answered 429", ReasonCode.API_UNAVAILABLE),
        (status(500), "answered 500", ReasonCode.API_UNAVAILABLE),
        (status(401, message="Unauthorized"), "does not let StarForge watch Pods", ReasonCode.PERMISSION),
        (status(403, message="not allowed"), "does not let StarForge watch Pods", ReasonCode.PERMISSION),
        (Answer(then="cut"), "can't be reached", ReasonCode.API_UNAVAILABLE),
        (Answer((b"<html>proxy</html>",)), "not JSON", ReasonCode.API_UNAVAILABLE),
    ],
)
def test_says_what_is_wrong_and_when_it_is_well_again(trouble: Answer, sentence: str, code: ReasonCode) -> None:
    again = [trouble] if trouble.status == 401 else []  # the client asks once more with credentials that it read anew
    with watching([trouble, *again, listed()], [STAY], PODS) as (_, told):
        wrong = told()
        assert isinstance(wrong, Heard)
        assert sentence in (wrong.problem or "")
        assert wrong.code is code
        assert isinstance(told(), Listed)
        assert told() == Heard(Kind.POD)


def test_comes_back_when_the_server_says() -> None:
    with watching([status(429, Retry_After="1"), listed()], [STAY], PODS) as (server, told):
        assert isinstance(told(), Heard)
        assert len(server.asked) == 1


def rounds(count_: int, answers: Callable[[Query], Answer], clock: Callable[[], float]) -> list[float]:
    """How long it waits after each of so many tries; without jitter."""
    with serving(lambda _method, _path, query: answers(query)) as server:
        streams = Streams()
        backoff = Backoff(first_s=1, longest_s=30, jitter=lambda: 0.0)
        watch = ListWatch(server.api(), PODS, Inbox(streams.halted), streams, backoff=backoff, clock=clock)
        return [watch._round() for _ in range(count_)]


@pytest.mark.parametrize(
    ("trouble", "waits"),
    [
        pytest.param(status(503), [0.5, 1, 2, 4], id="503"),
        pytest.param(status(429), [0.5, 1, 2, 4], id="429"),
        pytest.param(status(429, Retry_After="3"), [3, 3, 3, 4], id="429 that says when"),
        pytest.param(status(503, Retry_After="60"), [60, 60], id="503 that says when"),
        pytest.param(status(410), [0.5, 1, 2], id="410 for ever"),
    ],
)
def test_what_fails_is_asked_again_later_and_later(trouble: Answer, waits: list[float]) -> None:
    assert rounds(len(waits), lambda _: trouble, time.monotonic) == waits


def test_a_watch_that_went_well_for_a_while_is_taken_up_again_at_once() -> None:
    """Cut by a proxy every few minutes, it would be blind for half a minute each time otherwise."""
    cut = changes(("ADDED", pod("a", version=11)), then="cut")
    long, short = count(0.0, QUICK_S).__next__, count(0.0, QUICK_S / 10).__next__
    assert rounds(4, lambda query: cut if "watch" in query else listed(), long) == [0.5] * 4
    assert rounds(4, lambda query: cut if "watch" in query else listed(), short) == [0.5, 1, 2, 4]


def test_waits_longer_each_time_but_never_in_step() -> None:
    backoff = Backoff(first_s=1, longest_s=4, jitter=lambda: 0.0)
    assert [backoff.next_s() for _ in range(4)] == [0.5, 1, 2, 2]
    assert backoff.next_s(at_least=9) == 9
    backoff.reset()
    assert Backoff(first_s=1, jitter=lambda: 1.0).next_s() == 1
    assert backoff.next_s() == 0.5
