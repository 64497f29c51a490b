"""Breaks what StarForge stands on, one thing after the other, and says what became of the jobs: `make faults`.

CLUSTER_ENV is the file that describes a cluster (as for scripts/e2e/use-cluster.sh), CLUSTER_RESTART the program that
restarts a process of it. `--fleet local` needs neither, and tries what needs no Kubernetes. Exit code 1 if anything is
not as promised; with --ci also if something was not tried.
"""

import argparse
import asyncio
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starforge.adapters.settings import load_settings
from starforge.cli.ending import remove_runs
from tests.e2e.faults.catalogue import catalogue
from tests.e2e.faults.cluster import STORAGE_MOUNT, Cluster, find_cluster
from tests.e2e.faults.fault import Fault
from tests.e2e.faults.playing import play
from tests.e2e.faults.report import HEADINGS, Row, line, merged, summary, with_ttl
from tests.e2e.faults.scene import Scene, say
from tests.e2e.faults.site import LOCAL, Site, scratch, site
from tests.e2e.faults.ttl import TTL_S, ttl_path

REPO = Path(__file__).parents[3]
PAGE = REPO / "docs" / "reliability.md"
SEED = 1


@dataclass(frozen=True)
class Plan:
    """`minutes` is how long faults are begun; those after it are not tried."""

    faults: Sequence[Fault]
    seed: int
    minutes: float
    local: bool


def main() -> int:
    options = arguments()
    wanted = [fault for fault in catalogue() if re.search(options.only, fault.name)]
    if options.ci:
        wanted = [fault.shortened() for fault in wanted if fault.sample]
    with scratch() as folder:
        plan = Plan(wanted, options.seed, options.minutes, options.fleet == "local")
        rows = asyncio.run(tried(plan, folder))
    show(rows)
    if options.write:
        names = [fault.name for fault in catalogue()]
        PAGE.write_text(merged(PAGE.read_text(encoding="utf-8"), rows, names), encoding="utf-8")
    if options.ttl:
        show_ttl(write=options.write)
    skipped = [row for row in rows if row.skipped]
    failed = [row for row in rows if not (row.is_ok or row.skipped)]
    return 1 if failed or (skipped and options.ci) or not rows else 0


def arguments() -> Any:
    parser = argparse.ArgumentParser(prog="make faults", description="Break things, and see what becomes of the jobs.")
    parser.add_argument("--only", default="", help="only faults whose name matches this expression")
    parser.add_argument("--seed", type=int, default=SEED, help="of the order in which processes are killed")
    parser.add_argument("--ci", action="store_true", help="one sample of each kind, in short")
    parser.add_argument("--fleet", choices=("kuberay", "local"), default="kuberay")
    parser.add_argument("--minutes", type=float, default=24 * 60, help="begin no fault after this many")
    parser.add_argument("--write", action="store_true", help=f"put the rows into {PAGE.relative_to(REPO)}")
    parser.add_argument("--ttl", action="store_true", help="measure KubeRay's own TTL path as well")
    return parser.parse_args()


async def tried(plan: Plan, folder: Path) -> list[Row]:
    """The rows of all faults, in order."""
    there = None if plan.local else find_cluster(folder / "token")
    skipped = {fault.name: why for fault in plan.faults if (why := cannot(fault, there, local=plan.local))}
    if len(skipped) == len(plan.faults):
        return [Row(fault.name, fault.when, skipped=skipped[fault.name]) for fault in plan.faults]
    for name, why in skipped.items():
        say(f"skipped: {name}: {why}")
    if there:
        await there.prepare()
    until = time.monotonic() + plan.minutes * 60
    with place(folder, there) as running:
        rows = [
            Row(fault.name, fault.when, skipped=why)
            if (why := skipped.get(fault.name) or (time.monotonic() > until and "there was no time left") or None)
            else await fresh(running, there, plan.seed, fault)
            for fault in plan.faults
        ]
        await running.gateway.close()
    if there:
        await there.revoke_token()
    return rows


async def fresh(running: Site, there: Cluster | None, seed: int, fault: Fault) -> Row:
    """The row of one fault; it begins when all of ours are well."""
    try:
        await running.ready()
    except RuntimeError:
        say(running.last_words())
        return Row(fault.name, fault.when, problems=("the processes of ours did not get ready before it",))
    row = await play(Scene(running, there, seed), fault)
    if not row.is_ok:
        say(running.last_words())
        if there:
            await cleared(there)
    return row


async def cleared(there: Cluster) -> None:
    """So that the next fault has the room; a cluster that is broken will say so to it."""
    try:
        await there.clear()
    except RuntimeError as failed:
        say(f"what is left could not be removed: {failed}"[:600])


@contextmanager
def place(folder: Path, there: Cluster | None) -> Iterator[Site]:
    """StarForge on the cluster, or with a fleet on this machine."""
    if there is None:
        marks = folder / "marks"
        marks.mkdir()
        with site(folder, LOCAL, marks, str(marks)) as running:
            try:
                yield running
            finally:
                remove_runs(load_settings(running.settings))
        return
    marks = there.marks / folder.name
    marks.mkdir()
    marks.chmod(0o755)
    try:
        with site(folder, there.settings, marks, f"{STORAGE_MOUNT}/{folder.name}") as running:
            yield running
    finally:
        shutil.rmtree(marks)


def cannot(fault: Fault, there: Cluster | None, *, local: bool) -> str | None:
    """What a fault needs and is not there."""
    if local:
        return "it needs a Kubernetes cluster" if fault.needs_cluster else None
    if there is None:
        return "there is no cluster: CLUSTER_ENV has to name the file that describes one, CLUSTER_RESTART a program"
    missing = [name for name in fault.needs if not (there.home / name).exists()]
    return f"it needs {', '.join(missing)} in {there.home}" if missing else None


def show_ttl(*, write: bool) -> None:
    """Measure what a job takes that is left to KubeRay."""
    with scratch() as folder:
        there = find_cluster(folder / "token")
        if there is None:
            say("skipped: KubeRay's own TTL path: there is no cluster")
            return
        seconds = asyncio.run(measured_ttl(there))
    sys.stdout.write(f"KubeRay's own path, with a TTL of {TTL_S} s: {seconds:.1f} s after the end of the code\n")
    if write:
        PAGE.write_text(with_ttl(PAGE.read_text(encoding="utf-8"), TTL_S, seconds), encoding="utf-8")


async def measured_ttl(there: Cluster) -> float:
    await there.prepare()
    try:
        return await ttl_path(there)
    finally:
        await there.revoke_token()


def show(rows: Sequence[Row]) -> None:
    sys.stdout.write("\n".join([line(HEADINGS), "|" + "---|" * len(HEADINGS)]) + "\n")
    for row in rows:
        sys.stdout.write((f"| {row.fault} | skipped: {row.skipped} |" if row.skipped else line(row.cells())) + "\n")
    for row in rows:
        sys.stdout.writelines(f"! {row.fault}: {problem}\n" for problem in row.problems)
    sys.stdout.write(summary(rows) + "\n")


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the processes are stopped then too
    sys.exit(main())
