"""The whole watch over a small API server: what it tells, and that it ends."""

import threading
from collections.abc import Callable, Iterator
from itertools import islice
from math import ceil

import pytest

from starforge.adapters.kube.client import PAGE, KubeApi
from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.paths import NODES, PODS_OF_THE_CLUSTER, Paths
from starforge.adapters.kube.settings import KubeConfig
from starforge.adapters.kube.watch import observer
from starforge.adapters.kube.watch.nodeboard import NodeRules
from starforge.adapters.kube.watch.observer import Observer, sources
from starforge.domain.capacity.nodes import NodesSeen
from starforge.domain.names import JobId, RunKey
from starforge.domain.observation import EventSeen, FleetHeard, LogSeen, RunPhase, RunSeen, Seen
from starforge.domain.ports import Resume
from starforge.domain.reason import ReasonCode
from starforge.domain.settled import same_picture
from tests.unit.kube.kube_cluster import Cluster, served
from tests.unit.kube.kube_objects import event, node, pod, rayjob
from tests.unit.kube.kube_orders import AT, RUN
from tests.unit.kube.kube_server import Answer, Query, Server, changes, listed, serving, status

LOG = Answer((b"2026-11-29T12:00:00.5Z hello\n",))
STAY = changes(then="stay")
PATHS = Paths("ns")
RULES = NodeRules("starforge/gpu-series")


class Namespace:
    """A namespace with a run in it; `down` makes every answer a 503, `instead` is what some paths answer."""

    def __init__(self) -> None:
        self.down, self.has_kueue = False, False
        self.instead: dict[str, Answer] = {}
        gone = ("DELETED", rayjob(version=20, job="SUCCEEDED", deployment="Complete"))
        self.watches = {"rayjobs": changes(gone, then="stay")}
        self.lists = {"rayjobs": listed(rayjob()), "pods": listed(pod("a", node_type="head", state="terminated"))}
        self.lists["events"] = listed(event("a"), event("job-uid", uid="other", kind="RayJob"))

    def __call__(self, _method: str, path: str, query: Query) -> Answer:
        kind = path.rpartition("/")[2]
        if self.down:
            return status(503, message="down")
        if path in self.instead:
            return self.instead[path]
        if kind == "log":
            return LOG
        if kind == "workloads" and not self.has_kueue:
            return status(404, message="the server could not find the requested resource")
        return self.watches.get(kind, STAY) if "watch" in query else self.lists.get(kind, listed())


def observe(server: Server, stop: threading.Event) -> Iterator[Seen]:
    config = KubeConfig(namespace="ns", api_server=server.url)
    return Observer(server.api(), config.namespace, lambda _run, _source: Resume(None), lambda: AT, RULES).observe(stop)


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


def threads_that_stay() -> list[str]:
    """Names of the watch's threads that do not end; on a busy machine the last of them take a moment."""
    ours = [each for each in threading.enumerate() if each.name.startswith(("watch", "log "))]
    for each in ours:
        each.join(60)
    return [each.name for each in ours if each.is_alive()]


def test_runs_logs_and_events_come_out_and_the_threads_end() -> None:
    stop = threading.Event()
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
    assert threads_that_stay() == []


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


def test_a_token_that_was_revoked_under_open_watches_is_told_as_soon_as_one_is_asked_for_again() -> None:
    namespace, stop = Namespace(), threading.Event()
    revoked = status(401, message="Unauthorized")
    with serving(namespace) as server:
        told = observe(server, stop)
        runs_in(told, 1)
        namespace.watches["pods"] = changes()
        namespace.lists["jobs"] = status(503, message="down")
        namespace.lists["pods"] = namespace.lists["rayjobs"] = revoked
        server.closing.set()  # ends what is open
        heard = first(told, [], lambda each: isinstance(each, FleetHeard) and each.code is ReasonCode.PERMISSION)
        assert isinstance(heard, FleetHeard)
        assert "Kubernetes does not let StarForge watch " in (heard.problem or "")
        stop.set()
        list(told)


def test_leaving_the_watch_ends_its_threads() -> None:
    with serving(Namespace()) as server:
        told = observe(server, threading.Event())
        next(told)
        told.close()  # type: ignore[attr-defined]
        with pytest.raises(StopIteration):
            next(told)
        assert threads_that_stay() == []


FORBIDDEN = status(403, "Forbidden", "it is forbidden")


@pytest.mark.parametrize("path", [NODES, PODS_OF_THE_CLUSTER])
def test_nodes_are_told_once_the_right_to_see_them_is_given(path: str, caplog: pytest.LogCaptureFixture) -> None:
    namespace, stop = Namespace(), threading.Event()
    namespace.lists["nodes"] = listed(node())
    namespace.instead[path] = FORBIDDEN
    with serving(namespace) as server:
        told, seen = observe(server, stop), list[Seen]()
        first(told, seen, lambda _: sum(asked == path for _, asked, _ in server.asked) > 1 and bool(caplog.records))
        first(told, seen, lambda each: each == FleetHeard(AT))
        assert {each.code for each in seen if isinstance(each, FleetHeard) and each.problem} <= {None}
        assert not [each for each in seen if isinstance(each, NodesSeen)]
        del namespace.instead[path]
        nodes = first(told, seen, lambda each: isinstance(each, NodesSeen))
        assert isinstance(nodes, NodesSeen)
        assert (nodes.whole, [view.name for view in nodes.nodes]) == (True, ["node-a"])
        stop.set()
        list(told)
    assert len([each for each in caplog.records if "capacity is not told" in each.getMessage()]) == 1


def test_a_kueue_that_was_down_and_is_gone_then_is_no_problem() -> None:
    namespace, stop = Namespace(), threading.Event()
    namespace.has_kueue = True
    with serving(namespace) as server:
        told = observe(server, stop)
        first(told, [], lambda each: each == FleetHeard(AT, other_queue="Kueue"))
        namespace.instead[PATHS.workloads] = status(503, message="down")
        server.closing.set()  # ends what is open
        problem = "The Kubernetes API answered 503 when asked for Workloads: down"
        first(told, [], lambda each: isinstance(each, FleetHeard) and each.problem == problem)
        namespace.instead[PATHS.workloads] = status(404, message="the server could not find the requested resource")
        first(told, [], lambda each: each == FleetHeard(AT))
        stop.set()
        list(told)


# --- against a server with a memory -----------------------------------------------------------------------------------

WAITING = "waiting"  # so that no log is followed


def filled(runs: int) -> Cluster:
    """So many runs of a RayJob and two Pods each."""
    cluster = Cluster()
    for number in range(runs):
        run = RunKey(JobId(f"job-{number:020}"), 1)
        cluster.put(PATHS.rayjobs, named(rayjob(run=run, uid=f"rayjob-{number}"), f"try-{number:04}"))
        for uid in (f"{number}-head", f"{number}-worker"):
            cluster.put(PATHS.pods, pod(uid, run=run, node_type=uid.rpartition("-")[2], state=WAITING))
    return cluster


def named(found: KubeObject, name: str) -> KubeObject:
    found["metadata"]["name"] = name
    return found


def watch_of(url: str, stop: threading.Event) -> Iterator[Seen]:
    config = KubeConfig(namespace="ns", api_server=url)
    return Observer(KubeApi(config), "ns", lambda _run, _source: Resume(None), lambda: AT, RULES).observe(stop)


def runs_in(told: Iterator[Seen], count: int) -> list[RunSeen]:
    """The next pictures, so many of them."""
    return list(islice((each for each in told if isinstance(each, RunSeen)), count))


def well(told: Iterator[Seen]) -> None:
    first(told, [], lambda each: isinstance(each, FleetHeard) and each.problem is None)


@pytest.mark.parametrize("runs", [1, 300])
def test_what_is_asked_of_the_server_does_not_grow_with_the_jobs(runs: int) -> None:
    cluster, stop = filled(runs), threading.Event()
    with served(cluster) as url:
        told = watch_of(url, stop)
        assert len(runs_in(told, runs)) == runs
        for _ in range(3):
            well(told)
        assert cluster.asked["watch"] == len(sources("ns"))
        pages = ceil(2 * runs / PAGE) - 1
        assert cluster.asked["list"] == len(sources("ns")) + pages
        stop.set()
        list(told)


def test_what_changed_while_the_watch_was_too_old_is_found_by_comparing() -> None:
    cluster, stop = filled(3), threading.Event()
    with served(cluster) as url:
        told = watch_of(url, stop)
        runs_in(told, 3)
        cluster.compact()
        cluster.delete(PATHS.rayjobs, "try-0001")
        cluster.delete(PATHS.pods, "pod-1-head")
        cluster.delete(PATHS.pods, "pod-1-worker")
        gone = first(told, [], lambda each: isinstance(each, RunSeen) and not each.pods)
        assert isinstance(gone, RunSeen)
        assert (gone.phase, gone.run.job) == (RunPhase.ABSENT, f"job-{1:020}")
        stop.set()
        assert [each for each in told if isinstance(each, RunSeen) and each.run != gone.run] == []


def test_pictures_are_told_again_as_the_same_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "TELL_ALL_S", 0.1)
    cluster, stop = filled(2), threading.Event()
    with served(cluster) as url:
        told = watch_of(url, stop)
        before = {seen.run: seen for seen in runs_in(told, 2)}
        again = {seen.run: seen for seen in runs_in(told, 2)}
        assert all(one is other for run in before for one, other in zip(before[run].pods, again[run].pods, strict=True))
        assert all(same_picture(before[run], again[run]) for run in before)
        stop.set()
        list(told)


def test_what_can_not_be_seen_is_not_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "TELL_ALL_S", 0.1)
    namespace, stop = Namespace(), threading.Event()
    with serving(namespace) as server:
        told = observe(server, stop)
        runs_in(told, 1)
        namespace.down = True
        namespace.watches["pods"] = changes()
        server.closing.set()  # ends what is open
        first(told, [], lambda each: isinstance(each, FleetHeard) and each.problem is not None)
        later = list(islice(told, 3))
        assert [each for each in later if isinstance(each, RunSeen)] == []
        stop.set()
        list(told)
