"""Watches a namespace: one thread a kind, a few for all logs, and this one, which puts together what they say."""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from queue import Empty

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.labels import MANAGED, KubeObject
from starforge.adapters.kube.paths import NODES, PODS_OF_THE_CLUSTER, Paths
from starforge.adapters.kube.watch.board import Board
from starforge.adapters.kube.watch.eventdesk import EventDesk
from starforge.adapters.kube.watch.listwatch import ListWatch, Source
from starforge.adapters.kube.watch.logs.followers import Followers
from starforge.adapters.kube.watch.messages import Changed, Heard, Inbox, Kind, LinesThere, Listed, Message, NotServed
from starforge.adapters.kube.watch.nodeboard import NODE_KINDS, NodeBoard, NodeRules, claimed, noted
from starforge.adapters.kube.watch.pictures import Pictures
from starforge.adapters.kube.watch.streams import Streams
from starforge.adapters.kube.watch.timers import Timers
from starforge.adapters.kube.watch.uids import Uids
from starforge.domain.names import RunKey
from starforge.domain.observation import FleetHeard, Seen
from starforge.domain.ports import Resume
from starforge.domain.reason import ReasonCode

_log = logging.getLogger(__name__)
COALESCE_S = 0.05
LOG_BATCH_S = 0.1
HEARD_S = 1.0
TELL_ALL_S = 30.0
JOIN_S = 2.0
_SILENT = "The Kubernetes API has not told yet what there is."
_RUNS, _HEARD, _NODES = "runs", "heard", "nodes"
# As the scheduler: a Pod that is being removed counts until it is gone, and one without a node takes nothing yet.
_COUNTS = "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="
# KubeRay's submitter Jobs carry no labels of ours, and other Jobs none of KubeRay's.
_SUBMITTERS = "app.kubernetes.io/created-by=kuberay-operator"


def sources(namespace: str) -> tuple[Source, ...]:
    """What is watched. KubeRay copies the labels of a RayJob to its RayCluster."""
    paths = Paths(namespace)
    return (
        Source(Kind.RAYJOB, paths.rayjobs, MANAGED),
        Source(Kind.RAYCLUSTER, paths.rayclusters, MANAGED),
        Source(Kind.POD, paths.pods, MANAGED),
        Source(Kind.JOB, paths.batch_jobs, _SUBMITTERS),
        Source(Kind.EVENT, paths.events, resumable=False),
        Source(Kind.WORKLOAD, paths.workloads, optional=True),
        Source(Kind.NODE, NODES, optional=True, slim=noted),
        Source(Kind.CLAIM, PODS_OF_THE_CLUSTER, optional=True, fields=_COUNTS, slim=claimed),
    )


class Observer:
    """One watch of a namespace, from what there is now on."""

    def __init__(
        self,
        api: KubeApi,
        namespace: str,
        resume: Callable[[RunKey, str], Resume],
        now: Callable[[], datetime],
        rules: NodeRules,
    ) -> None:
        self._now, self._clock = now, time.monotonic
        self._streams = Streams()
        self._inbox = Inbox(self._streams.halted)
        uids = Uids()
        self._board, self._desk = Board(uids), EventDesk(uids)
        self._followers = Followers(api, namespace, resume, self._inbox)
        self._nodes = NodeBoard(rules)
        self._pictures = Pictures()
        self._problems: dict[Kind, Heard] = {}
        self._served: set[Kind] = set()
        self._lacking: set[Kind] = set()
        self._timers = Timers()
        self._tell_all_at = self._clock() + TELL_ALL_S
        watches = [ListWatch(api, source, self._inbox, self._streams) for source in sources(namespace)]
        self._threads = [threading.Thread(target=watch.run, name="watch", daemon=True) for watch in watches]

    def observe(self, stop: threading.Event) -> Iterator[Seen]:
        """Everything that happens until `stop` is set; the threads end with it."""
        for thread in self._threads:
            thread.start()
        self._timers.set(_HEARD, self._clock() + HEARD_S)
        try:
            while not stop.is_set():
                yield from self._step()
        finally:
            self._halt()

    def _step(self) -> Iterator[Seen]:
        try:
            message = self._inbox.queue.get(timeout=self._timers.wait_s(self._clock(), HEARD_S))
        except Empty:
            pass
        else:
            yield from self._take(message)
        for name in self._timers.due(self._clock()):
            yield from self._ring(name)

    def _take(self, message: Message) -> Iterator[Seen]:
        match message:
            case Listed(kind=Kind.EVENT, objects=events):
                for event in events:
                    yield from self._event(event)
            case Changed(kind=Kind.EVENT, object=event, deleted=deleted):
                yield from () if deleted else self._event(event)
            case Listed() | Changed() if message.kind in NODE_KINDS:
                self._node(message)
            case Listed():
                self._listed(message)
            case Changed():
                self._changed(message)
            case Heard():
                self._heard(message)
            case NotServed():
                self._lacks(message)
            case LinesThere(source=source):
                self._timers.set(source, self._clock() + LOG_BATCH_S)

    def _node(self, message: Listed | Changed) -> None:
        if isinstance(message, Listed):
            self._nodes.listed(message)
        else:
            self._nodes.changed(message)
        self._schedule_nodes()

    def _schedule_nodes(self) -> None:
        if self._nodes.dirty:
            self._timers.set(_NODES, self._clock() + COALESCE_S)

    def _heard(self, message: Heard) -> None:
        self._nodes.watched(message.kind, well=message.problem is None)
        if message.problem is None:
            self._problems.pop(message.kind, None)
            self._served.add(message.kind)
            self._lacking.discard(message.kind)
            self._schedule_nodes()
        else:
            self._problems[message.kind] = message

    def _lacks(self, message: NotServed) -> None:
        """Capacity is not told without a right of ours that jobs can do without: say so once."""
        self._served.discard(message.kind)
        self._problems.pop(message.kind, None)
        self._nodes.watched(message.kind, well=False)
        if message.kind in NODE_KINDS and message.kind not in self._lacking:
            needed = "list and watch %s. Apply deploy/rbac.yaml. Kubernetes says: %s"
            _log.warning("capacity is not told, as our account may not " + needed, message.kind.plural, message.why)
        self._lacking.add(message.kind)

    def _event(self, event: KubeObject) -> Iterator[Seen]:
        seen = self._desk.take(event, self._clock())
        if seen is not None:
            yield seen

    def _listed(self, message: Listed) -> None:
        gone = self._board.listed(message)
        if message.kind is Kind.POD:
            for pod in gone:
                self._followers.gone(pod, self._clock())
            for pod in message.objects:
                self._followers.pod(pod)
        self._schedule()

    def _changed(self, message: Changed) -> None:
        self._board.changed(message)
        if message.kind is Kind.POD:
            self._followers.pod(message.object)
            if message.deleted:
                self._followers.gone(message.object, self._clock())
        self._schedule()

    def _schedule(self) -> None:
        if self._board.dirty:
            self._timers.set(_RUNS, self._clock() + COALESCE_S)

    def _ring(self, name: str) -> Iterator[Seen]:
        if name == _HEARD:
            yield from self._every_second()
        elif name == _RUNS:
            yield from self._pictures.keep(self._board.take_dirty(self._now()))
        elif name == _NODES:
            yield from self._nodes.take_dirty(self._now())
        else:
            yield from self._followers.fetch(name)
            if self._followers.has_more(name):
                self._timers.set(name, self._clock())

    def _every_second(self) -> Iterator[Seen]:
        clock = self._clock()
        self._timers.set(_HEARD, clock + HEARD_S)
        self._followers.wake_late(clock)
        yield from self._desk.matched(clock)
        if clock >= self._tell_all_at and self._sees_runs:
            self._tell_all_at = clock + TELL_ALL_S
            yield from self._pictures.again(self._now())
        yield self._how_it_is_heard()

    @property
    def _sees_runs(self) -> bool:
        """Whether what was told last is how it is now."""
        return self._board.complete and not (self._problems.keys() & {Kind.RAYJOB, Kind.POD})

    def _how_it_is_heard(self) -> FleetHeard:
        """A token that is not good is what to tell first, as it explains the rest."""
        told = sorted(self._problems.values(), key=lambda heard: heard.code is not ReasonCode.PERMISSION)
        if told:
            return FleetHeard(self._now(), told[0].problem, told[0].code)
        problem = None if self._board.complete else _SILENT
        return FleetHeard(self._now(), problem, other_queue="Kueue" if Kind.WORKLOAD in self._served else None)

    def _halt(self) -> None:
        self._streams.halt()
        until = self._clock() + JOIN_S
        for thread in [*self._threads, *self._followers.halt()]:
            thread.join(max(0.0, until - self._clock()))
