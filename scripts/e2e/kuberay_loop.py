"""The closed loop on the cluster that the FORGE_* settings name: every row a real job, driven through GraphQL alone.

    eval "$(bash scripts/e2e/use-cluster.sh)" && uv run python scripts/e2e/kuberay_loop.py [--only EXPRESSION]

LOOP_HTTP_S3_ENDPOINT names the object store over plain HTTP, LOOP_SERIES the two series of the cluster (h200,b200),
LOOP_PAIR_SERIES the one that has room for two machines of one CPU each (the second).
Exit code 1 if anything fails.
"""

import argparse
import asyncio
import itertools
import os
import re
import signal
import sys
import time
import traceback
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from loop.checks import nodes, settings_of
from loop.gateway import Gateway
from loop.processes import starforge
from loop.rows import Row, rows

NEEDED = ("FORGE_K8S_API_SERVER", "FORGE_S3_ENDPOINT", "FORGE_S3_ACCESS_KEY", "FORGE_S3_SECRET_KEY")


@dataclass
class Verdict:
    row: Row
    word: str
    seconds: float
    told: str


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the closed loop.")
    parser.add_argument("--only", default="", help="only rows whose title matches this expression")
    missing = [name for name in NEEDED if not os.environ.get(name)]
    if missing:
        print(f"The loop needs {', '.join(missing)}: see scripts/e2e/use-cluster.sh.", file=sys.stderr)
        return 2
    wanted = [row for row in rows() if re.search(parser.parse_args().only, row.title)]
    gpus, https = advertised_gpus(), os.environ["FORGE_S3_ENDPOINT"].startswith("https")
    verdicts: list[Verdict] = []
    for settings, group in itertools.groupby(wanted, key=lambda row: row.settings):
        verdicts += asyncio.run(variant(settings, list(group), gpus=gpus, https=https))
    show(verdicts)
    return 1 if any(verdict.word == "FAILED" for verdict in verdicts) else 0


async def variant(settings: dict[str, str], group: list[Row], *, gpus: int, https: bool) -> list[Verdict]:
    """The verdicts of rows that share their settings, and so their processes."""
    skipped = {id(row): reason for row in group if (reason := skip(row, gpus=gpus, https=https))}
    if len(skipped) == len(group):
        return [Verdict(row, "skipped", 0.0, skipped[id(row)]) for row in group]
    with starforge(settings) as gateway:
        found = [
            Verdict(row, "skipped", 0.0, skipped[id(row)]) if id(row) in skipped else await judge(gateway, row)
            for row in group
        ]
        await gateway.close()
    return found


def skip(row: Row, *, gpus: int, https: bool) -> str | None:
    if row.needs_gpus and not gpus:
        return "skipped: no GPUs advertised"
    if row.needs_https and not https:
        return "skipped: the object store speaks HTTP only"
    if row.needs_http and not settings_of(row.settings)["FORGE_S3_ENDPOINT"].startswith("http:"):
        return "skipped: LOOP_HTTP_S3_ENDPOINT names no store that speaks HTTP"
    return None


async def judge(gateway: Gateway, row: Row) -> Verdict:
    print(f"… {row.title}", file=sys.stderr, flush=True)
    began = time.monotonic()
    try:
        told = await row.check(gateway, settings_of(row.settings))
        verdict = Verdict(row, "ok", time.monotonic() - began, told)
    except Exception as failed:  # noqa: BLE001  the other rows still have something to tell
        traceback.print_exc()
        verdict = Verdict(row, "FAILED", time.monotonic() - began, f"{type(failed).__name__}: {failed}"[:300])
    print(f"  {verdict.word} {verdict.seconds:.0f} s {verdict.told}", file=sys.stderr, flush=True)
    return verdict


def advertised_gpus() -> int:
    """GPUs that the nodes of the cluster advertise together."""
    found = asyncio.run(nodes(settings_of({})))
    return sum(int(node["status"].get("allocatable", {}).get("nvidia.com/gpu", 0)) for node in found)


def show(verdicts: list[Verdict]) -> None:
    table = Table("row", "verdict", "seconds", "what it showed", title="The closed loop")
    colours = {"ok": "green", "FAILED": "red", "skipped": "yellow"}
    for verdict in verdicts:
        word = f"[{colours[verdict.word]}]{verdict.word}[/]"
        table.add_row(verdict.row.title, word, f"{verdict.seconds:.0f}" if verdict.seconds else "", verdict.told)
    Console(width=140).print(table)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the processes are stopped then too
    sys.exit(main())
