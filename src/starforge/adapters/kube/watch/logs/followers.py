"""Starts a follower for each container as soon as it has started, and passes on what they read."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.labels import KubeObject, run_of
from starforge.adapters.kube.paths import Paths
from starforge.adapters.kube.views.containers import containers
from starforge.adapters.kube.watch.logs.buffer import Buffer
from starforge.adapters.kube.watch.logs.cursor import read_cursor
from starforge.adapters.kube.watch.logs.follower import Ends, Follower, Target
from starforge.adapters.kube.watch.messages import Inbox, LinesThere
from starforge.adapters.kube.watch.streams import Streams
from starforge.domain.names import RunKey
from starforge.domain.observation import ContainerRole, ContainerState, ContainerView, LogSeen
from starforge.domain.ports import Resume

# What a Pod that is gone may still have in the pipe.
LAST_LINES_S = 10.0


@dataclass
class _Log:
    """One log that is followed. `wake_at` is when its reader is woken, because its Pod is gone."""

    run: RunKey
    target: Target
    pod: str
    init: bool
    buffer: Buffer
    ends: Ends
    thread: threading.Thread
    wake_at: float | None = None


class Followers:
    """All logs of the namespace; used by the observer's thread alone."""

    def __init__(
        self, api: KubeApi, namespace: str, resume: Callable[[RunKey, str], Resume], inbox: Inbox, streams: Streams
    ) -> None:
        self._api, self._paths, self._resume = api, Paths(namespace), resume
        self._inbox, self._streams = inbox, streams
        self._logs: dict[str, _Log] = {}
        self._known: dict[str, set[str]] = {}

    def pod(self, pod: KubeObject) -> None:
        """Takes what is new of a Pod: containers that started or ended."""
        run = run_of(pod)
        if run is None:
            return
        for container in containers(pod):
            source = _source(pod, container)
            if container.state is ContainerState.WAITING:
                continue
            if source not in self._known.setdefault(pod["metadata"]["uid"], set()):
                self._known[pod["metadata"]["uid"]].add(source)
                self._start(run, pod, container, source)
            elif source in self._logs and _final(pod, container):
                self._logs[source].ends.say(ended=True)

    def gone(self, pod: KubeObject, clock: float) -> None:
        """The Pod is not there any more: what can still be read is read, and its logs are closed."""
        for source in self._known.pop(pod["metadata"]["uid"], ()):
            log = self._logs.get(source)
            if log is not None:
                log.ends.say(gone=True)
                log.wake_at = clock + LAST_LINES_S

    def fetch(self, source: str) -> Iterator[LogSeen]:
        """The next lines of a log, if it has some or has ended."""
        log = self._logs.get(source)
        if log is None:
            return
        batch = log.buffer.fetch()
        if batch.last:
            del self._logs[source]
        if batch.more:
            self._inbox.put(LinesThere(source))
        if batch.lines or batch.last:
            yield LogSeen(
                run=log.run,
                source=source,
                lines=batch.lines,
                cursor=str(batch.cursor or ""),
                pod=log.pod,
                container=log.target.container,
                init=log.init,
                closed=batch.last,
            )

    def wake_late(self, clock: float) -> None:
        """Wakes readers whose Pod is gone for a while, as nothing more comes."""
        for log in self._logs.values():
            if log.wake_at is not None and log.wake_at <= clock:
                log.wake_at = None
                self._streams.wake(log.target.source)

    def halt(self) -> list[threading.Thread]:
        """Wakes everybody, after all was halted; the threads to wait for."""
        for log in self._logs.values():
            log.ends.wake()
        return [log.thread for log in self._logs.values()]

    def _start(self, run: RunKey, pod: KubeObject, container: ContainerView, source: str) -> None:
        left = self._resume(run, source)
        if left.closed:
            return
        name = pod["metadata"]["name"]
        target = Target(source, self._paths.pod_log(name), container.name)
        cursor = read_cursor(left.cursor)
        buffer = Buffer(cursor, self._streams.halted, lambda: self._inbox.put(LinesThere(source)))
        ends = Ends(ended=_final(pod, container))
        follower = Follower(self._api, target, cursor, buffer=buffer, ends=ends, streams=self._streams)
        thread = threading.Thread(target=follower.run, name=f"log {source}", daemon=True)
        self._logs[source] = _Log(run, target, name, container.role is ContainerRole.INIT, buffer, ends, thread)
        thread.start()


def _source(pod: KubeObject, container: ContainerView) -> str:
    return f"pod/{pod['metadata']['name']}/{container.name}"


def _final(pod: KubeObject, container: ContainerView) -> bool:
    """Whether it will not run again: nothing of ours restarts in place, but a cluster may change a Pod on its way."""
    ended = container.termination
    if ended is None:
        return False
    over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    never = (pod.get("spec") or {}).get("restartPolicy") == "Never"
    return over or never or (container.role is ContainerRole.INIT and ended.exit_code == 0)
