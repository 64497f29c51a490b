"""Logs of containers, from a server that ends, breaks off and says no."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.watch.logs.followers import Followers
from starforge.adapters.kube.watch.logs.loop import FILLERS, OPENERS
from starforge.adapters.kube.watch.messages import Inbox, LinesThere
from starforge.domain.logs import LINE_MAX_BYTES
from starforge.domain.names import RunKey
from starforge.domain.observation import LogSeen
from starforge.domain.ports import Resume
from tests.unit.kube.kube_objects import pod
from tests.unit.kube.kube_server import Answer, Query, Server, serving, status
from tests.unit.kube.test_kube_credentials import named_file

SOURCE = "pod/pod-a/main"
LINES = tuple(f"2026-11-29T12:00:0{number}.5Z line {number}\n".encode() for number in range(6))


def nothing_yet(_run: RunKey, _source: str) -> Resume:
    return Resume(None)


class Followed:
    """Followers over one server; `until_closed` gathers what they tell."""

    def __init__(
        self, server: Server, resume: Callable[[RunKey, str], Resume], slots: int, api: KubeApi | None = None
    ) -> None:
        self.halted = threading.Event()
        self.inbox = Inbox(self.halted)
        self.server = server
        self.followers = Followers(api or server.api(), "ns", resume, self.inbox, slots=slots)

    def next(self) -> list[LogSeen]:
        message = self.inbox.queue.get(timeout=10)
        assert isinstance(message, LinesThere)
        told = list(self.followers.fetch(message.source))
        while self.followers.has_more(message.source):
            told += self.followers.fetch(message.source)
        return told

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

    with followed_on(answer, resume) as followed:
        yield followed


@contextmanager
def followed_on(
    answer: Callable[[str, str, Query], Answer],
    resume: Callable[[RunKey, str], Resume] = nothing_yet,
    slots: int = 100,
    make_api: Callable[[str], KubeApi] | None = None,
) -> Iterator[Followed]:
    with serving(answer) as server:
        followed = Followed(server, resume, slots, make_api(server.url) if make_api else None)
        try:
            yield followed
        finally:
            followed.halted.set()
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
        assert told[-1].missing is not None
        assert told[-1].missing.startswith("Pod pod-a was gone before its log was read to the end: ")


def test_a_pod_that_is_gone_before_its_log_was_read_says_so() -> None:
    with following([status(404, message='pods "pod-a" not found')]) as followed:
        followed.followers.pod(pod("a"))
        followed.followers.gone(pod("a"), 0.0)
        (last,) = followed.until()
        assert (last.lines, last.closed) == ((), True)
        assert last.missing == (
            "Pod pod-a was gone before its log was read to the end: "
            'the Kubernetes API answered 404: pods "pod-a" not found.'
        )


def test_a_log_that_ended_before_its_pod_was_gone_is_whole() -> None:
    with following([Answer(LINES), status(404)]) as followed:
        followed.followers.pod(pod("a"))
        told = followed.until(lines=6)
        followed.followers.gone(pod("a"), 0.0)
        told += followed.until()
        assert (text(told), told[-1].closed, told[-1].missing) == (
            [f"line {number}" for number in range(6)],
            True,
            None,
        )


def test_a_log_that_is_refused_again_and_again_is_interrupted_until_it_is_read_again() -> None:
    lost = status(500, message="dial tcp 10.0.0.7:10250: connect: connection refused")
    with following([lost, lost, lost, Answer(LINES[:2]), Answer(LINES[1:], then="stay")]) as followed:
        followed.followers.pod(pod("a"))
        (first,) = followed.next()
        assert (first.lines, first.closed, first.cursor) == ((), False, "")
        assert first.problem == (
            "the Kubernetes API answered 500: dial tcp 10.0.0.7:10250: connect: connection refused"
        )
        told = followed.until(lines=6)
        assert text(told) == [f"line {number}" for number in range(6)]
        assert told[-1].problem is None
        assert ["follow" in query for query in queries(followed)] == [True, True, True, False, True]


@pytest.mark.parametrize("good", ["new", "another"])
def test_credentials_that_are_refused_are_read_again_at_once(tmp_path: Path, good: str) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    servers: list[Server] = []

    def answer(_method: str, _path: str, _query: Query) -> Answer:
        return Answer(LINES) if servers[0].shown[-1] == good else status(401, "Unauthorized", "Unauthorized")

    def made(url: str) -> KubeApi:
        api = KubeApi(named_file(url, token))
        token.write_text("new")
        return api

    with followed_on(answer, make_api=made) as followed:
        servers.append(followed.server)
        followed.followers.pod(ended())
        if good == "new":
            assert text(followed.until()) == [f"line {number}" for number in range(6)]
            assert followed.server.shown == ["old", "new"]
        else:
            (told,) = followed.next()
            assert told.problem == "the Kubernetes API answered 401: Unauthorized"
            assert followed.server.shown[:4] == ["old", "new", "new", "new"], (
                "read again once, and then not for a while"
            )


def test_the_run_before_a_restart_is_a_log_of_its_own() -> None:
    def answer(_method: str, _path: str, query: Query) -> Answer:
        return Answer(LINES[:2] if "previous" in query else LINES[2:], then="end" if "previous" in query else "stay")

    restarted = pod("a")
    restarted["status"]["containerStatuses"][0] |= {"restartCount": 1, "lastState": {"terminated": {"exitCode": 1}}}
    with followed_on(answer) as followed:
        followed.followers.pod(restarted)
        told: list[LogSeen] = []
        while sum(len(each.lines) for each in told) < 6 or not any(each.closed for each in told):
            told += followed.next()
        previous = [each for each in told if each.previous]
        assert {each.source for each in previous} == {f"{SOURCE}/previous"}
        assert (text(previous), previous[-1].closed) == (["line 0", "line 1"], True)
        assert text([each for each in told if not each.previous]) == [f"line {number}" for number in range(2, 6)]
        followed.followers.pod(restarted)
        assert len(followed.server.asked) == 2


def test_lines_of_ten_megabytes_and_bytes_that_are_no_text_come_whole() -> None:
    long = b"x\xff\xc3\xa9\x1b[31m" * 1_250_000
    with following([Answer((b"2026-11-29T12:00:00Z ", long, b"\n", LINES[1]))]) as followed:
        followed.followers.pod(ended())
        told = followed.until()
    lines = [line for each in told for line in each.lines]
    assert b"".join(line.data for line in lines[:-1]) == long
    assert [line.goes_on for line in lines] == [True] * (len(lines) - 2) + [False, False]
    assert max(len(line.data) for line in lines) <= LINE_MAX_BYTES
    assert lines[-1].data == b"line 1"


def test_a_cut_within_a_long_line_goes_on_there() -> None:
    stamp, half = b"2026-11-29T12:00:01Z ", b"ab" * LINE_MAX_BYTES
    cut = Answer((LINES[0], stamp, half), then="cut")
    with following([cut, Answer((LINES[0], stamp, half, half, b"\n"))]) as followed:
        followed.followers.pod(ended())
        told = followed.until()
    lines = [line for each in told for line in each.lines]
    assert b"".join(line.data for line in lines[1:]) == half + half
    assert [line.goes_on for line in lines[1:]] == [True] * (len(lines) - 2) + [False]


def test_every_log_is_read_by_the_same_few_threads() -> None:
    before = threading.active_count()
    with followed_on(lambda _method, _path, _query: Answer(LINES)) as followed:
        for number in range(60):
            followed.followers.pod(pod(f"a{number}", state="terminated"))
        closed: set[str] = set()
        while len(closed) < 60:
            closed |= {each.source for each in followed.next() if each.closed}
        ours = [each.name for each in threading.enumerate() if each.name.startswith("log ")]
        assert len(ours) <= 1 + OPENERS + FILLERS
    assert threading.active_count() <= before + OPENERS + FILLERS


def test_a_kubelets_own_troubles_and_a_last_line_without_end() -> None:
    lines = (b"unable to retrieve container logs\n", LINES[0], LINES[1].rstrip(b"\n"))
    with following([Answer(lines)]) as followed:
        followed.followers.pod(ended())
        assert text(followed.until()) == ["line 0", "line 1"]
