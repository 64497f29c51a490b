"""Follows each container as soon as it has started, and passes on what is read."""

import asyncio
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
from starforge.adapters.kube.watch.logs.loop import LogLoop
from starforge.adapters.kube.watch.logs.rayfile import RayFile
from starforge.adapters.kube.watch.logs.slots import Slots, slots_there_are
from starforge.adapters.kube.watch.messages import Inbox, LinesThere
from starforge.domain.names import RunKey
from starforge.domain.observation import ContainerRole, ContainerState, ContainerView, LogSeen
from starforge.domain.ports import Resume

# What a Pod that is gone may still have in the pipe.
LAST_LINES_S = 10.0
_SWEEP_S = 1.0
_WOKEN = 64


@dataclass
class _Log:
    """One log that is followed. `wake_at` is when its reader is woken, because its Pod is gone."""

    run: RunKey
    target: Target
    init: bool
    buffer: Buffer
    follower: Follower
    wake_at: float | None = None


class Followers:
    """All logs of the namespace, on one loop; used by the observer's thread alone."""

    def __init__(
        self,
        api: KubeApi,
        namespace: str,
        resume: Callable[[RunKey, str], Resume],
        inbox: Inbox,
        *,
        slots: int | None = None,
    ) -> None:
        self._api, self._namespace, self._paths, self._resume = api, namespace, Paths(namespace), resume
        self._inbox, self._loop = inbox, LogLoop()
        self._slots = Slots(slots or slots_there_are())
        self._logs: dict[str, _Log] = {}
        self._known: dict[str, set[str]] = {}
        self._loop.start(self._sweep())

    def pod(self, pod: KubeObject) -> None:
        """Takes what is new of a Pod: containers that started or ended."""
        run = run_of(pod)
        if run is None:
            return
        known = self._known.setdefault(pod["metadata"]["uid"], set())
        for container in containers(pod):
            source = _source(pod, container)
            if container.previous is not None and f"{source}/previous" not in known:
                known.add(f"{source}/previous")
                self._start(run, pod, container, previous=True)
            if container.state is ContainerState.WAITING:
                continue
            if source not in known:
                known.add(source)
                self._start(run, pod, container)
            elif source in self._logs and _final(pod, container):
                self._say(source, Ends(ended=True))

    def gone(self, pod: KubeObject, clock: float) -> None:
        """The Pod is not there any more: what can still be read is read, and its logs are closed."""
        for source in self._known.pop(pod["metadata"]["uid"], ()):
            log = self._logs.get(source)
            if log is not None:
                self._say(source, Ends(ended=True, gone=True))
                log.wake_at = clock + LAST_LINES_S

    def fetch(self, source: str) -> Iterator[LogSeen]:
        """The next lines of a log, if it has some or has ended."""
        log = self._logs.get(source)
        if log is None:
            return
        batch = log.buffer.fetch()
        if batch.last:
            del self._logs[source]
        if batch.lines or batch.last or batch.turned:
            yield LogSeen(
                run=log.run,
                source=source,
                lines=batch.lines,
                cursor=str(batch.cursor or ""),
                pod=log.target.pod,
                container=log.target.container,
                init=log.init,
                closed=batch.last,
                missing=batch.missing,
                problem=batch.problem,
                previous=log.target.previous,
            )

    def has_more(self, source: str) -> bool:
        """Whether there is something to fetch again, which is not told."""
        return source in self._logs and self._logs[source].buffer.has_more

    def wake_late(self, clock: float) -> None:
        """Wakes readers whose Pod is gone for a while, as nothing more comes."""
        for source, log in self._logs.items():
            if log.wake_at is not None and log.wake_at <= clock:
                log.wake_at = None
                self._loop.call(self._slots.stop, source)

    def halt(self) -> list[threading.Thread]:
        """Ends all reading; the thread to wait for."""
        self._loop.halt()
        return [self._loop.thread]

    def _say(self, source: str, ends: Ends) -> None:
        self._loop.call(self._logs[source].follower.say, ends)

    def _start(self, run: RunKey, pod: KubeObject, container: ContainerView, *, previous: bool = False) -> None:
        source = _source(pod, container) + ("/previous" if previous else "")
        left = self._resume(run, source)
        if left.closed:
            return
        name = pod["metadata"]["name"]
        target = Target(source, name, self._paths.pod_log(name), container.name, previous)
        cursor = read_cursor(left.cursor)
        buffer = Buffer(cursor, self._loop.room, lambda: self._inbox.put(LinesThere(source)))
        follower = Follower(
            self._api,
            target,
            cursor,
            ends=Ends(ended=previous or _final(pod, container)),
            buffer=buffer,
            loop=self._loop,
            slots=self._slots,
            ray=RayFile(self._api, self._namespace, run),
        )
        self._logs[source] = _Log(run, target, container.role is ContainerRole.INIT, buffer, follower)
        self._loop.start(follower.run())

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_S)
            self._slots.sweep(self._loop.loop.time())
            self._loop.room.wake(_WOKEN)


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
