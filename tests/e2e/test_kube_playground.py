"""A playground on a real cluster: tiny-openai in a Pod of the Ray image, asked through the API server's own proxy."""

import asyncio
import json
import os
import threading
import time
import uuid
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from starforge.adapters.kube.fleet import KubeFleet
from starforge.domain.errors import FleetUnavailable
from starforge.domain.job import Actor, ActorKind
from starforge.domain.names import playground_id
from starforge.domain.observation import LogSeen, RunPhase, RunSeen, Seen
from starforge.domain.playground import Playground, PlaygroundState, new_clocks
from starforge.domain.playground_door import Door, ServerRequest
from starforge.domain.playground_spec import PlaygroundDraft, freeze_playground
from starforge.domain.ports import PlaygroundOrder
from tests.e2e.conftest import Cluster
from tests.e2e.test_kube_fleet import Heard

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
TINY = Path(__file__).parents[2] / "examples" / "tiny-openai" / "server.py"
STREAMS = 50


@pytest.fixture
def fleet(cluster: Cluster) -> Iterator[KubeFleet]:
    config = cluster.config
    fleet = KubeFleet(
        replace(config, playgrounds=replace(config.playgrounds, image=config.image, cpus=1, memory="1Gi"))
    )
    yield fleet
    fleet.close()


@pytest.fixture
def heard(fleet: KubeFleet) -> Iterator[Heard]:
    heard = Heard(fleet)
    thread = threading.Thread(target=heard.run, daemon=True)
    thread.start()
    yield heard
    heard.stop.set()
    thread.join(5)


@pytest.fixture
def playground(cluster: Cluster, fleet: KubeFleet) -> Iterator[Playground]:
    gpus = 1 if cluster.config.gpu_passthrough else 0
    draft = PlaygroundDraft("chat", os.environ.get("E2E_SERIES", "h200"), gpus, "org/tiny", project="default")
    spec = freeze_playground(draft, fleet.defaults())
    # The Ray image has no `vllm`; all else of the Pod is that of one.
    spec = replace(spec, machine=replace(spec.machine, command=("python3", "-u", "-c", TINY.read_text(), "serve")))
    at, ann = datetime.now(UTC), Actor("ann", ActorKind.TOKEN)
    id_ = playground_id(uuid.uuid4().hex)
    found = Playground(id_, spec, PlaygroundState.STARTING, at, ann, at, new_clocks(spec, at))
    fleet.launch_playground(PlaygroundOrder(found.key, found.pod_name, spec))
    yield found
    fleet.delete(found.key)


def ask(tokens: int, **more: object) -> ServerRequest:
    messages = [{"role": "user", "content": "word"}]
    body = {"messages": messages, "stream": True, "max_tokens": tokens, "ignore_eos": True, **more}
    return ServerRequest("POST", "chat/completions", body=json.dumps(body).encode())


async def events(
    door: Door, playground: Playground, request: ServerRequest
) -> AsyncGenerator[tuple[float, float], None]:
    """When each token was sent and when it was read."""
    rest = b""
    async with door.ask(playground, request) as answer:
        assert answer.status == 200
        async for piece in answer.pieces():
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    yield json.loads(line[6:])["sent_at"], time.time()


def test_tokens_come_as_they_are_sent_and_end_with_their_reader(
    fleet: KubeFleet, heard: Heard, playground: Playground
) -> None:
    def is_ready(seen: Seen) -> bool:
        return isinstance(seen, RunSeen) and seen.run == playground.key and seen.phase is RunPhase.RUNNING

    def says_gone(seen: Seen) -> bool:
        is_its = isinstance(seen, LogSeen) and seen.run == playground.key
        return is_its and any(b"a client went away" in line.data for line in seen.lines)  # type: ignore[union-attr]

    heard.until(is_ready)
    asyncio.run(_talk(fleet, playground))
    heard.until(says_gone)
    fleet.delete(playground.key)
    asyncio.run(_nobody(fleet, playground))


async def _talk(fleet: KubeFleet, playground: Playground) -> None:
    async with fleet.door() as door:
        many = await asyncio.gather(*(_all(door, playground) for _ in range(STREAMS)))
        for times in many:
            assert len(times) == 20
            assert times[0][1] < times[-1][0], "the first token was read only after the last was sent"
        async with aclosing(events(door, playground, ask(100_000))) as told:
            await anext(told)


async def _all(door: Door, playground: Playground) -> list[tuple[float, float]]:
    return [one async for one in events(door, playground, ask(20, tokens_per_second=5))]


async def _nobody(fleet: KubeFleet, playground: Playground) -> None:
    async with fleet.door() as door:
        with pytest.raises(FleetUnavailable, match="Pod"):  # noqa: PT012
            while True:  # it answers until its grace is over
                async with door.ask(playground, ServerRequest("GET", "models")):
                    pass
