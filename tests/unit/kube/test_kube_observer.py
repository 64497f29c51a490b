"""The whole watch over a small API server: what it tells, and that it ends."""

import threading
from collections.abc import Callable, Iterator

import pytest

from starforge.adapters.kube.settings import KubeConfig
from starforge.adapters.kube.watch.observer import Observer
from starforge.domain.observation import EventSeen, FleetHeard, LogSeen, RunPhase, RunSeen, Seen
from starforge.domain.ports import Resume
from tests.unit.kube.kube_objects import event, pod, rayjob
from tests.unit.kube.kube_orders import AT, RUN
from tests.unit.kube.kube_server import Answer, Query, Server, changes, listed, serving, status

LOG = Answer((b"2026-11-29T12:00:00.5Z hello\n",))
STAY = changes(then="stay")


class Namespace:
    """A namespace with a run in it; `down` makes every answer a 503."""

    def __init__(self) -> None:
        self.down = False
        gone = ("DELETED", rayjob(version=20, job="SUCCEEDED", deployment="Complete"))
        self.watches = {"rayjobs": changes(gone, then="stay")}
        self.lists = {"rayjobs": listed(rayjob()), "pods": listed(pod("a", node_type="head", state="terminated"))}
        self.lists["events"] = listed(event("a"), event("job-uid", uid="other", kind="RayJob"))

    def __call__(self, _method: str, path: str, query: Query) -> Answer:
        kind = path.rpartition("/")[2]
        if self.down:
            return status(503, message="down")
        if kind == "log":
            return LOG
        return self.watches.get(kind, STAY) if "watch" in query else self.lists.get(kind, listed())


def observe(server: Server, stop: threading.Event) -> Iterator[Seen]:
    config = KubeConfig(namespace="ns", api_server=server.url)
    return Observer(server.api(), config.namespace, lambda _run, _source: Resume(None), lambda: AT).observe(stop)


def first(told: Iterator[Seen], seen: list[Seen], wanted: Callable[[Seen], bool]) -> Seen:
    """The first that is wanted, of what was told and is told from now on."""
    for each in seen:
        if wanted(each):
            return each
    for each in told:
        seen.append(each)
        if wanted(each):
            return each
    raise AssertionError("the watch ended")


def test_runs_logs_and_events_come_out_and_the_threads_end() -> None:
    stop = threading.Event()
    before = set(threading.enumerate())
    with serving(Namespace()) as server:
        told, seen = observe(server, stop), list[Seen]()
        absent = first(told, seen, lambda each: isinstance(each, RunSeen) and each.phase is RunPhase.ABSENT)
        assert isinstance(absent, RunSeen)
        assert [each.machine for each in absent.pods] == [0]
        log = first(told, seen, lambda each: isinstance(each, LogSeen))
        assert isinstance(log, LogSeen)
        assert (log.run, log.source, [line.data for line in log.lines]) == (RUN, "pod/pod-a/main", [b"hello"])
        first(told, seen, lambda each: isinstance(each, EventSeen) and each.object.uid == "a")
        first(told, seen, lambda each: isinstance(each, EventSeen) and each.object.uid == "job-uid")
        first(told, seen, lambda each: each == FleetHeard(AT))
        stop.set()
        assert list(told) == []
    assert [each for each in set(threading.enumerate()) - before if each.name.startswith(("watch", "log "))] == []


def test_an_outage_is_told_and_nothing_is_said_to_be_gone() -> None:
    namespace = Namespace()
    namespace.down = True
    stop = threading.Event()
    with serving(namespace) as server:
        told, seen = observe(server, stop), list[Seen]()
        first(told, seen, lambda each: isinstance(each, FleetHeard) and "answered 503" in (each.problem or ""))
        namespace.down = False
        first(told, seen, lambda each: isinstance(each, FleetHeard) and each.problem is None)
        first(told, seen, lambda each: isinstance(each, RunSeen))
        stop.set()
        list(told)


def test_leaving_the_watch_ends_its_threads() -> None:
    with serving(Namespace()) as server:
        told = observe(server, threading.Event())
        next(told)
        told.close()  # type: ignore[attr-defined]
        with pytest.raises(StopIteration):
            next(told)
        assert [each.name for each in threading.enumerate() if each.name.startswith(("watch", "log "))] == []
