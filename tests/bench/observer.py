"""What it costs to observe 1,000 jobs with 10,000 Pods: CPU, memory and requests, at rest and while Pods change.

Run: python tests/bench/run.py observer

The observer is the real one in a process of its own, with a SQLite database that has the jobs; the API server is a made-up
one in another process, with Pods as large as real ones. OBSERVER_RUNS, OBSERVER_PODS (of a run), OBSERVER_SECONDS (at
rest, a fifth of it with changes), OBSERVER_LOGS (followed, of so many Pods) and OBSERVER_CHANGES (a second) change what is measured.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, cast

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from starforge.adapters.kube.fleet import KubeFleet
from starforge.adapters.kube.labels import run_labels
from starforge.adapters.kube.paths import Paths
from starforge.adapters.kube.settings import KubeConfig
from starforge.adapters.store import SqlStore, migrate
from starforge.domain.job import JobState, RunIdentity, advance
from starforge.domain.names import LABEL_POOL, RunKey, run_name
from starforge.domain.ports import Ports
from starforge.domain.queries import JobFilter
from starforge.workers.watch.loop import watch
from tests.contract.store.examples import a_job, a_spec, save
from tests.unit.kube.kube_cluster import Cluster, served
from tests.unit.kube.kube_objects import recorded

ROOT = Path(__file__).parent.parent.parent
RUNS = int(os.environ.get("OBSERVER_RUNS", "1000"))
PODS = int(os.environ.get("OBSERVER_PODS", "10"))
SECONDS = float(os.environ.get("OBSERVER_SECONDS", "300"))
LOGS = int(os.environ.get("OBSERVER_LOGS", "0"))
CHANGES = float(os.environ.get("OBSERVER_CHANGES", "50"))
PATIENCE_S = 900
NAMESPACE = "bench"
PATHS = Paths(NAMESPACE)
_TICKS = os.sysconf("SC_CLK_TCK")


def run_of(number: int) -> RunKey:
    return RunKey(a_job(number).id, 1)


# --- the API server ---------------------------------------------------------------------------------------------------


def serve() -> None:
    """Print the address; then answer each line of stdin with a line: `asked`, `change <a second>`."""
    threading.stack_size(256 * 1024)
    cluster, rate = Cluster(), [0.0]
    pods = fill(cluster)
    threading.Thread(target=change, args=(cluster, pods, rate), daemon=True).start()
    with served(cluster) as url:
        print(url, flush=True)
        for line in sys.stdin:
            word, *rest = line.split()
            if word == "change":
                rate[0] = float(rest[0])
            print(json.dumps(cluster.asked), flush=True)


def fill(cluster: Cluster) -> list[dict[str, Any]]:
    head, rayjob = recorded("pods")[0], recorded("rayjob")
    pods: list[dict[str, Any]] = []
    for number in range(RUNS):
        run = run_of(number)
        name = run_name("bench", run)
        one = deepcopy(rayjob)
        one["metadata"] |= {"name": name, "namespace": NAMESPACE, "uid": f"rayjob-{number}", "labels": run_labels(run)}
        one["status"] |= {"jobStatus": "RUNNING", "jobDeploymentStatus": "Running", "rayClusterName": name}
        cluster.put(PATHS.rayjobs, one)
        pods += [pod_of(head, run, machine, followed=len(pods) + machine < LOGS) for machine in range(PODS)]
    for pod in pods:
        cluster.put(PATHS.pods, pod)
    return pods


def pod_of(template: dict[str, Any], run: RunKey, machine: int, *, followed: bool) -> dict[str, Any]:
    """A Pod that is ready and as large as they are; its log can be followed only if its container is said to run."""
    pod = deepcopy(template)
    name = f"{run_name('bench', run)}-{machine}"
    labels = {LABEL_POOL: "pool0", "ray.io/node-type": "worker" if machine else "head"}
    pod["metadata"] |= {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "labels": run_labels(run) | labels}
    much = [{"name": f"variable-{number}", "value": "x" * 60} for number in range(30)]
    pod["metadata"]["managedFields"] = pod["spec"]["volumes"] = pod["spec"]["containers"][0]["env"] = much
    pod["status"]["phase"] = "Running"
    if not followed:
        pod["status"].pop("containerStatuses", None)
    return pod


def change(cluster: Cluster, pods: list[dict[str, Any]], rate: list[float]) -> None:
    """Change a Pod so many times a second: each time another one stops being ready, or is again."""
    number, due = 0, time.monotonic()
    while True:
        due = max(due, time.monotonic() - 1) + (1 / rate[0] if rate[0] else 0.2)
        time.sleep(max(0.0, due - time.monotonic()))
        if rate[0]:
            pod = pods[number * 7919 % len(pods)]
            for condition in pod["status"]["conditions"]:
                if condition["type"] == "Ready":
                    condition["status"] = "False" if condition["status"] == "True" else "True"
            cluster.put(PATHS.pods, pod)
            cluster.asked["change"] += 1
            number += 1


# --- the observer -----------------------------------------------------------------------------------------------------


def observe(url: str, database: str) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    fleet = KubeFleet(KubeConfig(namespace=NAMESPACE, api_server=url, token="bench"))
    nothing = cast("Any", None)
    ports = Ports(
        store=SqlStore(database), fleet=fleet, objects=nothing, packer=nothing, nudge=lambda _: None,
        publish=lambda _: None, now=lambda: datetime.now(UTC), random=lambda: os.urandom(16).hex(), scratch=nothing,
    )  # fmt: skip
    watch(ports, threading.Event())


def fill_store(database: str) -> None:
    migrate(database)
    store, now = SqlStore(database), datetime.now(UTC)
    spec = a_spec(fleet="kuberay")
    for first in range(0, RUNS, 200):
        jobs = [
            advance(a_job(number, spec, at=now), JobState.PENDING, now)
            for number in range(first, min(first + 200, RUNS))
        ]
        names = [RunIdentity(run_name("bench", job.run), NAMESPACE, f"rayjob-{n}") for n, job in enumerate(jobs, first)]
        save(
            store,
            *(
                job.with_attempt(replace(job.attempt, run=name, launched_at=now))
                for job, name in zip(jobs, names, strict=True)
            ),
        )
    store.close()


# --- the measurement --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reading:
    at: float
    cpu_s: float
    asked: dict[str, int]


@contextmanager
def part(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """This program again, in another part."""
    program = [sys.executable, __file__, *arguments]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


def say(server: subprocess.Popen[str], line: str) -> dict[str, int]:
    cast("IO[str]", server.stdin).write(f"{line}\n")
    cast("IO[str]", server.stdin).flush()
    answer: dict[str, int] = json.loads(cast("IO[str]", server.stdout).readline())
    return answer


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def megabytes(pid: int, what: str) -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(what))
    return int(line.split()[1]) / 1024


def measure(server: subprocess.Popen[str], pid: int, *, changes: float, seconds: float) -> str:
    say(server, f"change {changes}")
    before = Reading(time.monotonic(), cpu_s(pid), say(server, "asked"))
    time.sleep(seconds)
    after = Reading(time.monotonic(), cpu_s(pid), say(server, "asked"))
    minutes = (after.at - before.at) / 60
    cpu = (after.cpu_s - before.cpu_s) / minutes
    kinds = {
        kind: (after.asked.get(kind, 0) - before.asked.get(kind, 0)) / minutes for kind in ("list", "watch", "log")
    }
    asked = " + ".join(f"{each:.1f} {kind}" for kind, each in kinds.items())
    changed = (after.asked.get("change", 0) - before.asked.get("change", 0)) / minutes / 60
    name = f"{changed:.0f} Pod changes/s" if changes else "at rest"
    return f"| {name} | {cpu:.1f} | {megabytes(pid, 'VmRSS'):.0f} | {sum(kinds.values()):.1f} ({asked}) |"


def until_all_run(database: str, pid: int) -> float:
    """Seconds of CPU until every job was seen to run."""
    store, until = SqlStore(database), time.monotonic() + PATIENCE_S
    running = JobFilter(states=(JobState.RUNNING,))
    while store.job_count(running, at_most=RUNS) < RUNS:
        if time.monotonic() > until:
            raise SystemExit("the observer did not see all jobs run")
        time.sleep(0.5)
    store.close()
    return cpu_s(pid)


def until_all_followed(server: subprocess.Popen[str]) -> None:
    while say(server, "asked").get("log", 0) < LOGS:
        time.sleep(0.5)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, part("serve") as server:
        database = f"sqlite:///{folder}/bench.db"
        fill_store(database)
        url = cast("IO[str]", server.stdout).readline().strip()
        with part("observe", url, database) as observer:
            first = until_all_run(database, observer.pid)
            until_all_followed(server)
            time.sleep(5)
            print(f"{RUNS} runs with {RUNS * PODS} Pods and {LOGS} logs: all taken in after {first:.1f} s of CPU\n")
            print("| | CPU, s a minute | memory, MiB | requests a minute |\n| --- | --- | --- | --- |")
            for changes, seconds in ((0.0, SECONDS), (CHANGES, SECONDS / 5)):
                print(measure(server, observer.pid, changes=changes, seconds=seconds), flush=True)
            print(f"\nmost memory: {megabytes(observer.pid, 'VmHWM'):.0f} MiB")


if __name__ == "__main__":
    parts: dict[str, Callable[..., None]] = {"serve": serve, "observe": observe}
    parts.get(sys.argv[1] if sys.argv[1:] else "", main)(*sys.argv[2:])
