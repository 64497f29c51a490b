"""Playgrounds of a World, brought into a state as people, workers and the fleet would."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from starforge.domain.actions.create_playground import Created, create_playground
from starforge.domain.actions.expire_playgrounds import expire_playgrounds
from starforge.domain.names import JobId, PlaygroundId
from starforge.domain.observation import (
    ContainerRole,
    ContainerState,
    ContainerView,
    LogSeen,
    PodPhase,
    PodRole,
    PodView,
    RawLine,
    RunPhase,
    RunSeen,
    Termination,
)
from starforge.domain.playground import SERVER, Playground, PlaygroundState
from starforge.domain.playground_spec import PlaygroundDraft
from starforge.domain.timeline import Entry, PlaygroundStateChanged
from tests.unit.actions.world import ANN, World, pod

DRAFT = PlaygroundDraft("chat", "h200", 1, "org/model", ttl_seconds=3600, idle_seconds=600)


class Players:
    """What is done with the playgrounds of a world."""

    def __init__(self, world: World) -> None:
        self.world = world
        given = world.fleet.given
        self.world.fleet.given = replace(given, playgrounds=replace(given.playgrounds, image="example/vllm:1"))
        self._cursor = 0

    def create(self, draft: PlaygroundDraft = DRAFT, key: str | None = None) -> Created:
        return create_playground(self.world.ports, draft, ANN, key)

    def starting(self, draft: PlaygroundDraft = DRAFT) -> PlaygroundId:
        id_ = self.create(draft).playground.id
        self.world.work()
        return id_

    def ready(self, draft: PlaygroundDraft = DRAFT) -> PlaygroundId:
        id_ = self.starting(draft)
        self.see(id_, self.pod(id_))
        assert self.get(id_).state is PlaygroundState.READY
        return id_

    def get(self, id_: PlaygroundId) -> Playground:
        return self.world.sql.playgrounds_by_id([id_])[id_]

    def pod(self, id_: PlaygroundId, *, ready: bool = True, **rest: Any) -> PodView:
        server = ContainerView(SERVER, ContainerRole.MAIN, "example/vllm:1", ContainerState.RUNNING, ready=ready)
        given: dict[str, Any] = {"pool": None, "machine": None, "ready": ready, "containers": (server,)}
        return pod(self.get(id_).pod_name, PodRole.PLAYGROUND, **(given | rest))

    def ended_pod(self, id_: PlaygroundId, code: int, reason: str | None = None) -> PodView:
        ended = Termination(code, reason=reason)
        server = ContainerView(SERVER, ContainerRole.MAIN, "x", ContainerState.TERMINATED, termination=ended)
        return self.pod(id_, ready=False, phase=PodPhase.FAILED, containers=(server,))

    def see(self, id_: PlaygroundId, *pods: PodView, gone: tuple[PodView, ...] = ()) -> None:
        phase = RunPhase.RUNNING if pods else RunPhase.ABSENT
        seen = RunSeen(self.get(id_).key, phase, self.world.clock(), pods, gone=gone)
        self.world.observer.observe([seen])

    def say(self, id_: PlaygroundId, *texts: str, closed: bool = False) -> None:
        self._cursor += 1
        one = self.get(id_)
        lines = tuple(RawLine(text.encode(), self.world.clock()) for text in texts)
        cursor = f"cursor {self._cursor}"
        seen = LogSeen(one.key, one.log, lines, cursor, one.pod_name, SERVER, closed=closed)
        self.world.observer.observe([seen])

    def gone(self, id_: PlaygroundId) -> None:
        """Its Pod goes, as the watch tells it."""
        self.see(id_)

    def pass_time(self, seconds: float) -> None:
        """Beat and workers go on, second by second."""
        until = self.world.clock() + timedelta(seconds=seconds)
        while self.world.clock() < until:
            self.world.clock.forward(1)
            expire_playgrounds(self.world.ports)
            self.world.work()

    def entries(self, id_: PlaygroundId) -> list[Entry]:
        return self.world.entries(JobId(id_))

    def states(self, id_: PlaygroundId) -> list[PlaygroundState]:
        """The states that the timeline tells of, in order."""
        details = [entry.detail for entry in self.entries(id_)]
        return [detail.state for detail in details if isinstance(detail, PlaygroundStateChanged)]
