"""How long the gateway's event loop is held by the largest and the most hostile documents.

Run: python tests/bench/run.py loop

A task on the gateway's own loop beats every millisecond and notes how much of its thread's CPU went by between two
beats, which a busy machine does not change; the wall clock stands beside it.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from starforge.api import app
from starforge.api.server import tune_garbage
from tests.integration.fuzz.conftest import generous_gateway
from tests.integration.gateway import Gateway, a_submission

JOBS, ROUNDS = 120, 4
ALIASES = 28
EVENTS = "nodes { __typename id type message count firstAt lastAt severity }"


def _repeated(field_: str, times: int) -> str:
    return " ".join(f"a{number}: {field_}" for number in range(times))


def _diamond(levels: int) -> str:
    spread = " ".join(f"fragment F{n} on Job {{ ...F{n + 1} ...F{n + 1} }}" for n in range(levels))
    return f"{{ jobs(first: 1) {{ nodes {{ ...F0 }} }} }} {spread} fragment F{levels} on Job {{ id }}"


DOCUMENTS = {
    "100 jobs with their specs": (
        "{ jobs(first: 100) { nodes { id name spec { command env { name value } labels { key value } "
        "pools { name series machines cpus memory } } } } }"
    ),
    "100 jobs, history and attempts": (
        "{ jobs(first: 100) { nodes { id history { state } attempts { id number state reason { code } } "
        "podCounts { ready } } } }"
    ),
    "podCounts under 28 names": f"{{ jobs(first: 100) {{ nodes {{ {_repeated('podCounts { ready }', ALIASES)} }} }} }}",
    "20 jobs with 100 events each": f"{{ jobs(first: 20) {{ nodes {{ id events(first: 100) {{ {EVENTS} }} }} }} }}",
    "25 times 100 events": f"{{ {_repeated(f'events(first: 100) {{ {EVENTS} }}', 25)} }}",
    "1,000 lines of 9 logs": "{ jobs(first: 9) { nodes { logs(first: 1000) { nodes { number text at } } } } }",
    "a diamond of 20 fragments": _diamond(20),
    "one field 300 times": f"{{ jobs(first: 1) {{ nodes {{ {'id ' * 300} }} }} }}",
    "an object 150 times": f"{{ {'jobs(first: 1) { nodes { id } } ' * 75} }}",
    "introspection": "{ __schema { types { name fields { name description args { name } type { name kind } } } } }",
}


@dataclass
class Heart:
    """The longest stretches between two beats, in seconds of the thread's CPU and of the wall."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)

    async def beat(self) -> None:
        cpu, wall = time.thread_time(), time.perf_counter()
        while True:
            await asyncio.sleep(0.001)
            now, clock = time.thread_time(), time.perf_counter()
            self.cpu.append(now - cpu)
            self.wall.append(clock - wall)
            cpu, wall = now, clock

    def restart(self) -> None:
        self.cpu.clear()
        self.wall.clear()


def _with(heart: Heart) -> None:
    """The gateways that start from now on have this heart."""
    usual = app._lifespan

    @asynccontextmanager
    async def lifespan(*args: Any, **kwargs: Any) -> AsyncIterator[dict[str, Any]]:
        async with usual(*args, **kwargs) as state:
            beating = asyncio.create_task(heart.beat())
            try:
                yield state
            finally:
                beating.cancel()

    app._lifespan = lifespan


def _fill(gateway: Gateway) -> None:
    for start in range(0, JOBS, 60):
        items = [a_submission(name=f"loop-{start + number}", seconds=5) for number in range(60)]
        gateway.ask("mutation($i: SubmitJobsInput!) { submitJobs(input: $i) { acceptedCount } }", i={"items": items})
    query = "{ jobs(first: 1, filter: {active: true}) { totalCount } }"
    until = time.monotonic() + 120
    while gateway.ask(query)["jobs"]["totalCount"] and time.monotonic() < until:
        time.sleep(1)


def main() -> None:
    heart = Heart()
    _with(heart)
    with generous_gateway(Path(tempfile.mkdtemp()), None) as (there, gateway):
        _fill(gateway)
        there.rest()
        tune_garbage()
        print(
            "| document | answer, kB | took, ms | loop held, CPU ms | loop held, wall ms |\n| --- | --- | --- | --- | --- |"
        )
        for name, document in DOCUMENTS.items():
            print(_row(gateway, heart, name, document), flush=True)


def _row(gateway: Gateway, heart: Heart, name: str, document: str) -> str:
    cpu, wall = list[float](), list[float]()
    for number in range(ROUNDS):
        heart.restart()
        began = time.perf_counter()
        answer = gateway.answer(f"{document} # {number}")  # another text, so that nothing of it is kept
        took = time.perf_counter() - began
        cpu.append(max(heart.cpu, default=0.0) * 1000)
        wall.append(max(heart.wall, default=0.0) * 1000)
    size = len(str(answer)) / 1000
    return f"| {name} | {size:.0f} | {took * 1000:.0f} | {max(cpu):.0f} | {max(wall):.0f} |"


if __name__ == "__main__":
    main()
