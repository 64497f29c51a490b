"""What the way through a gateway adds to the tokens of a model, beside a direct connection to its server, in one run.

Alone, it starts tiny-openai on a local fleet behind a whole StarForge in a process of its own. On a cluster, name the ways
to one playground of tiny-openai:

    make bench ARGS="playgrounds gateway=https://…/playgrounds/<id>/v1 port-forward=http://127.0.0.1:8001/v1"

with the token in FORGE_TOKEN, which only an address with /playgrounds/ is shown. Times of a token are from the server's
`sent_at` to when it was read here, so that both have to have the same clock.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

import httpx

ROOT = Path(__file__).parents[2]
MODEL = "org/tiny"
ONE_BY_ONE, STREAMS, TOKENS, PACE, ROUNDS = 30, 50, 200, 20.0, 2
FAST_STREAMS, FAST_TOKENS = 8, 3000


@dataclass
class Taken:
    """Seconds: to the first token of each stream, of each token on its way, and of all together."""

    first: list[float] = field(default_factory=list)
    tokens: list[float] = field(default_factory=list)
    seconds: float = 0.0


async def stream(http: httpx.AsyncClient, address: str, taken: Taken, tokens: int, pace: float) -> None:
    body = {
        "model": MODEL, "messages": [{"role": "user", "content": "word"}], "stream": True, "max_tokens": tokens,
        "ignore_eos": True, "tokens_per_second": pace,
    }  # fmt: skip
    began, is_first, seen = time.time(), True, 0
    async with http.stream("POST", f"{address}/chat/completions", json=body) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            at = time.time()
            if not line.startswith("data: {"):
                continue
            if is_first:
                taken.first.append(at - began)
                is_first = False
            taken.tokens.append(at - json.loads(line[6:])["sent_at"])
            seen += 1
    if seen != tokens:
        raise RuntimeError(f"{address} gave {seen} of {tokens} tokens")


async def at_once(address: str, headers: Mapping[str, str], *, streams: int, tokens: int, pace: float) -> Taken:
    taken, limits = Taken(), httpx.Limits(max_connections=None, max_keepalive_connections=streams)
    async with httpx.AsyncClient(headers=headers, timeout=120, limits=limits, trust_env=False) as http:
        began = time.perf_counter()
        await asyncio.gather(*(stream(http, address, taken, tokens, pace) for _ in range(streams)))
        taken.seconds = time.perf_counter() - began
    return taken


async def one_by_one(address: str, headers: Mapping[str, str]) -> Taken:
    taken = Taken()
    async with httpx.AsyncClient(headers=headers, timeout=120, trust_env=False) as http:
        for _ in range(ONE_BY_ONE):
            await stream(http, address, taken, 1, 0)
    return taken


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def p99(values: list[float]) -> float:
    return quantiles(values, n=100)[98]


async def row(name: str, address: str, headers: Mapping[str, str]) -> str:
    alone = await one_by_one(address, headers)
    many = await at_once(address, headers, streams=STREAMS, tokens=TOKENS, pace=PACE)
    fast = await at_once(address, headers, streams=FAST_STREAMS, tokens=FAST_TOKENS, pace=0)
    return (
        f"| {name} | {ms(median(alone.first))} | {ms(median(many.first))} | {ms(median(many.tokens))} | "
        f"{ms(p99(many.tokens))} | {ms(max(many.tokens))} | {len(fast.tokens) / fast.seconds:,.0f} |"
    )


def report(ways: Mapping[str, str], token: str, memory: int | None = None) -> None:
    print(
        f"{STREAMS} streams at once of {TOKENS} tokens, {PACE:g} a second each; throughput by {FAST_STREAMS} without pause"
    )
    print("| way | first token, one by one | first token | token, median | p99 | worst | tokens/s at most |")
    print("|---|---|---|---|---|---|---|")
    for number in range(ROUNDS):
        for name, address in ways.items():
            shown = {"authorization": f"Bearer {token}"} if token and "/playgrounds/" in address else {}
            print(asyncio.run(row(name, address, shown)), flush=True)
            if memory:
                print(f"memory of StarForge after round {number + 1}: {resident_mib(memory):.0f} MiB", file=sys.stderr)


def resident_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


@contextmanager
def starforge() -> Iterator[tuple[dict[str, str], str, int]]:
    """A whole StarForge with a playground: the ways to it, a token, and the number of its process."""
    with tempfile.TemporaryDirectory(prefix="starforge-bench-") as folder:
        command = [sys.executable, str(Path(__file__)), "--serve", folder]
        env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=ROOT)
        assert child.stdin
        assert child.stdout
        try:
            told = json.loads(child.stdout.readline())
            yield told["ways"], told["token"], child.pid
        finally:
            child.stdin.close()
            child.wait(timeout=120)


def serve(folder: Path) -> None:
    """Tells of a playground on stdout, and ends with stdin."""
    from starforge.domain.names import PlaygroundId, playground_run
    from tests.integration.gateway import TOKEN
    from tests.integration.playground_platform import a_ready_playground, playground_platform, tiny_fleet

    with playground_platform(folder / "forge", tiny_fleet()) as platform, platform.gateway() as gateway:
        address = a_ready_playground(gateway)
        id_ = PlaygroundId(address.split("/")[-2])
        fleet = gateway.parts.ports.fleet
        status = fleet._directory(playground_run(id_)).status()  # type: ignore[attr-defined]
        ways = {"direct": f"http://{status.address}/v1", "gateway": address}
        print(json.dumps({"ways": ways, "token": TOKEN}), flush=True)
        sys.stdin.read()
        gateway.ask("mutation($id: ID!) { stopPlayground(id: $id) { playground { id } } }", id=id_)
        query = "subscription($id: ID!) { playground(id: $id) { playground { releasedAt } } }"
        with gateway.live(query, id=id_) as live:
            live.until(lambda step: bool(step["playground"] and step["playground"]["releasedAt"]))


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="playgrounds")
    parser.add_argument("ways", nargs="*", metavar="NAME=ADDRESS")
    given = parser.parse_args(words).ways
    if given:
        report(dict(way.split("=", 1) for way in given), os.environ.get("FORGE_TOKEN", ""))
        return
    with starforge() as (ways, token, pid):
        report(ways, token, pid)


if __name__ == "__main__":
    serve(Path(sys.argv[2])) if sys.argv[1:2] == ["--serve"] else main(sys.argv[1:])
