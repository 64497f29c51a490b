"""Logs of containers, from a server that ends, breaks off and says no."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.watch.logs.followers import Followers
from starforge.adapters.kube.watch.messages import Inbox, LinesThere
from starforge.adapters.kube.watch.streams import Streams
from starforge.domain.names import RunKey
from starforge.domain.observation import LogSeen
from starforge.domain.ports import Resume
from tests.unit.kube.kube_objects import pod
from tests.unit.kube.kube_server import Answer, Query, Server, serving, status

SOURCE = "pod/pod-a/main"
LINES = tuple(f"2026-11-29T12:00:0{number}.5Z line {number}\n".encode() for number in range(6))


def nothing_yet(_run: RunKey, _source: str) -> Resume:
    return Resume(None)


class Followed:
    """Followers over one server; `until_closed` gathers what they tell."""

    def __init__(self, server: Server, resume: Callable[[RunKey, str], Resume]) -> None:
        self.streams = Streams()
        self.inbox = Inbox(self.streams.halted)
        self.server = server
        self.followers = Followers(server.api(), "ns", resume, self.inbox, self.streams)

    def next(self) -> list[LogSeen]:
        message = self.inbox.queue.get(timeout=10)
        assert isinstance(message, LinesThere)
        return list(self.followers.fetch(message.source))

    def until(self, lines: int = -1) -> list[LogSeen]:
        """What was told until there are so many lines, or else until the log is closed."""
        told: list[LogSeen] = []
        while not (told and told[-1].closed) and sum(len(each.lines) for each in told) != lines:
            told += self.next()
        return told


@contextmanager
def following(answers: list[Answer], resume: Callable[[RunKey, str], Resume] = nothing_yet) -> Iterator[Followed]:
    def answer(_method: str, _path: str, _query: Query) -> Answer:
        return answers.pop(0) if len(answers) > 1 else answers[0]

    with serving(answer) as server:
        followed = Followed(server, resume)
        try:
            yield followed
        finally:
            followed.streams.halt()
            for thread in followed.followers.halt():
                thread.join(5)
                assert not thread.is_alive()


def text(told: list[LogSeen]) -> list[str]:
    return [line.data.decode() for each in told for line in each.lines]


def queries(followed: Followed) -> list[Query]:
    return [query for _, _, query in followed.server.asked]


def ended() -> KubeObject:
    return pod("a", state="terminated")


def test_a_log_is_closed_when_its_container_ended_and_all_was_read() -> None:
    with following([Answer(LINES)]) as followed:
        followed.followers.pod(ended())
        told = followed.until()
        assert text(told) == [f"line {number}" for number in range(6)]
        assert told[-1].closed
        assert (told[0].source, told[0].pod, told[0].container, told[0].init) == (SOURCE, "pod-a", "main", False)
        assert [query.get("follow") for query in queries(followed)] == [None]
        followed.followers.pod(ended())
        assert len(followed.server.asked) == 1, "what is closed is not followed again"


def test_a_container_that_waits_is_not_asked() -> None:
    with following([Answer(LINES)]) as followed:
        followed.followers.pod(pod("a", state="waiting"))
        assert followed.server.asked == []
        assert threading.active_count() >= 1


def test_after_a_break_nothing_is_lost_and_nothing_comes_twice() -> None:
    answers = [Answer(LINES[:3], then="cut"), status(503), status(400, message="waiting to start"), Answer(LINES[1:])]
    with following(answers) as followed:
        followed.followers.pod(pod("a"))
        told = followed.until(lines=6)
        assert text(told) == [f"line {number}" for number in range(6)]
        followed.followers.pod(ended())
        told = followed.until()
        assert (text(told), told[-1].closed) == ([], True)
        assert queries(followed)[0] == {"container": "main", "timestamps": "true", "follow": "true"}
        assert queries(followed)[1]["sinceTime"] == "2026-11-29T12:00:01Z"


def test_it_goes_on_where_the_observer_left_it() -> None:
    with following([Answer(LINES)]) as followed:
        followed.followers.pod(ended())
        told = followed.until()
    asked: list[tuple[RunKey, str]] = []

    def left(run: RunKey, source: str) -> Resume:
        asked.append((run, source))
        return Resume(told[-1].cursor)

    with following([Answer((*LINES, b"2026-11-29T12:00:09Z more\n"))], left) as followed:
        followed.followers.pod(ended())
        assert text(followed.until()) == ["more"]
        assert [source for _, source in asked] == [SOURCE]


def test_a_log_that_was_closed_is_not_read_again() -> None:
    with following([Answer(LINES)], lambda _run, _source: Resume("", closed=True)) as followed:
        followed.followers.pod(ended())
        assert followed.server.asked == []


def test_a_log_that_stays_open_is_told_as_it_comes_and_closed_when_its_pod_is_gone() -> None:
    with following([Answer(LINES[:2], then="stay"), status(404)]) as followed:
        followed.followers.pod(pod("a"))
        assert text(followed.until(lines=2)) == ["line 0", "line 1"]
        followed.followers.gone(pod("a"), 0.0)
        followed.followers.wake_late(60.0)
        told = followed.until()
        assert (text(told), told[-1].closed) == ([], True)


def test_a_kubelets_own_troubles_and_a_last_line_without_end() -> None:
    lines = (b"unable to retrieve container logs\n", LINES[0], LINES[1].rstrip(b"\n"))
    with following([Answer(lines)]) as followed:
        followed.followers.pod(ended())
        assert text(followed.until()) == ["line 0", "line 1"]
