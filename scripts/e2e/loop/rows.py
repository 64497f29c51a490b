"""The rows of the closed loop: what is run, under which settings, and what must come of it."""

import asyncio
import json
import os
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loop import checks
from loop.gateway import Gateway, within
from loop.jobs import Followed, files, pool, refused, run, start

REPO = Path(__file__).parent.parent.parent.parent
CODE = Path(__file__).parent.parent / "code"
DIGITS, FAILING = REPO / "examples" / "digits", REPO / "examples" / "failing"
TRICKY = "$(HOME) \"double\" 'single' $HOME `id`\nsecond line"
TIMED = {"preRunningSeconds": 240, "activeSeconds": 900}
CANCEL = 'mutation ($id: ID!) { cancelJob(id: $id, graceSeconds: 10, note: "loop") { status userErrors { message } } }'


@dataclass
class Row:
    """`settings` names the variant; rows of the same variant share their processes."""

    title: str
    check: Callable[[Gateway, dict[str, str]], Awaitable[str]]
    settings: dict[str, str] = field(default_factory=dict)
    needs_gpus: bool = False
    needs_https: bool = False
    needs_http: bool = False


def series() -> tuple[str, str]:
    """The two GPU series of the cluster."""
    first, second = os.environ.get("LOOP_SERIES", "h200,b200").split(",")
    return first, second


def spec(name: str, pools: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"name": name, "command": ["python3", "main.py"], "pools": pools, "deadlines": TIMED} | more


async def digits(gateway: Gateway, settings: dict[str, str]) -> str:
    first, second = series()
    env = [{"name": "RUN_NOTE", "value": TRICKY}, {"name": "TRAINERS", "value": "2"}]
    pools = [pool("train", first), pool("eval", second)]
    done = await run(gateway, spec("digits", pools, command=["python3", "train.py"], env=env), DIGITS)
    _ended(done, "SUCCEEDED", None)
    accuracy = done.metric("accuracy")
    assert accuracy >= 0.93, f"accuracy {accuracy}"
    assert f"evaluator: note {TRICKY!r}" in done.log, f"the variable arrived changed: {done.log[:2000]}"
    assert "evaluator: classes" in done.log, "the evaluator did not read its file"
    https = settings["FORGE_S3_ENDPOINT"].startswith("https")
    _init_containers(done, wanted=not https)
    await _placed(done, settings)
    await checks.after(done, settings)
    return f"accuracy {accuracy:.4f}"


def _init_containers(done: Followed, *, wanted: bool) -> None:
    for pod in done.job["pods"]:
        names = [one["name"] for one in pod["containers"] if "capsule" in one["name"]]
        assert bool(names) == wanted, f"{pod['name']} has the containers {pod['containers']}"
    if wanted:
        fetched = [one for one in done.job["logSources"] if "capsule" in one["key"]]
        assert len(fetched) == len(done.job["pods"]), "not every Pod fetched the Capsule"


async def _placed(done: Followed, settings: dict[str, str]) -> None:
    """The head on a node of the first series, the worker group on one of the second."""
    label = settings.get("FORGE_K8S_GPU_NODE_LABEL", "starforge/gpu-series")
    found = {node["metadata"]["name"]: node["metadata"]["labels"].get(label) for node in await checks.nodes(settings)}
    by_role = {pod["role"]: found[pod["nodeName"]] for pod in done.job["pods"] if pod["role"] != "SUBMITTER"}
    assert by_role == dict(zip(("HEAD", "WORKER"), series(), strict=True)), by_role


async def two_machines(gateway: Gateway, settings: dict[str, str]) -> str:
    roomy = os.environ.get("LOOP_PAIR_SERIES", series()[1])
    done = await run(gateway, spec("machines", [pool("train", roomy, machines=2)]), CODE / "machines")
    _ended(done, "SUCCEEDED", None)
    roles = sorted(pod["role"] for pod in done.job["pods"])
    assert roles == ["HEAD", "WORKER"], roles
    assert "machines 2 hosts 2 gpus 2" in done.log, done.log
    await checks.after(done, settings)
    return "head and a worker"


async def failing(gateway: Gateway, settings: dict[str, str]) -> str:
    first, _ = series()
    done = await run(gateway, spec("failing", [pool("train", first)], command=["python3", "train.py"]), FAILING)
    _ended(done, "FAILED", "USER_CODE")
    assert done.job["exitCode"] == 3, done.job["exitCode"]
    assert "Traceback (most recent call last)" in done.log, done.log
    await checks.after(done, settings)
    return "exit code 3"


async def cancel(gateway: Gateway, settings: dict[str, str]) -> str:
    first, _ = series()
    wanted = spec("sleeper", [pool("train", first)])
    one, following = await start(gateway, wanted, CODE / "sleeper")
    await _cancel_when(gateway, one, one.running, following)
    other, following = await start(gateway, wanted, CODE / "sleeper")
    await _cancel_when(gateway, other, other.pending, following)
    for followed in (one, other):
        _ended(followed, "CANCELED", "CANCELED")
        await checks.after(followed, settings)
    assert one.job["capsule"]["digest"] == other.job["capsule"]["digest"], "equal code and spec, two Capsules"
    return "running and pending, of one Capsule"


async def _cancel_when(
    gateway: Gateway, followed: Followed, event: asyncio.Event, following: asyncio.Task[None]
) -> None:
    await within(240, event.wait(), f"the state of {followed.id} to cancel it in")
    answer = (await gateway.ask(CANCEL, id=followed.id))["cancelJob"]
    assert answer["status"] == "REQUESTED", answer
    await following


async def no_such_series(gateway: Gateway, settings: dict[str, str]) -> str:
    deadlines = {"preRunningSeconds": 25, "activeSeconds": 900}
    wanted = spec("nowhere", [pool("train", "no-such-series")], deadlines=deadlines)
    [error] = await refused(gateway, wanted, CODE / "machines")
    assert error["code"] == "UNSATISFIABLE", error
    assert "there is no series no-such-series" in error["message"], error
    done = await run(gateway, wanted, CODE / "machines", allowUnsatisfiable=True)
    _ended(done, "FAILED", "PRERUNNING_DEADLINE")
    assert "FailedScheduling" in done.kubernetes, done.kubernetes
    assert any("no node" in reason or "nodes are available" in reason for reason in done.reasons), done.reasons
    await checks.after(done, settings)
    return "refused; allowed all the same, freed at its deadline"


async def storage(gateway: Gateway, settings: dict[str, str]) -> str:
    first, second = series()
    pools = [pool("train", first), pool("reader", second)]
    done = await run(gateway, _storage_spec(pools), CODE / "storage")
    _ended(done, "SUCCEEDED", None)
    assert "read on another machine: True, text True" in done.log, done.log
    assert "read-only True" in done.log, done.log
    await checks.after(done, settings)
    return "shared, corpus read-only"


def _storage_spec(pools: list[dict[str, Any]]) -> dict[str, Any]:
    values = {"STORAGE": "/starforge", "CORPUS": "/corpus", "NOTE_NAME": f"note-{uuid.uuid4().hex}"}
    return spec("storage", pools, env=[{"name": name, "value": value} for name, value in values.items()])


async def not_shared(gateway: Gateway, settings: dict[str, str]) -> str:
    first, second = series()
    errors = await refused(gateway, _storage_spec([pool("train", first), pool("reader", second)]), CODE / "storage")
    assert [error["code"] for error in errors] == ["STORAGE_NOT_SHARED"], errors
    done = await run(gateway, _storage_spec([pool("train", first)]), CODE / "storage")
    _ended(done, "SUCCEEDED", None)
    await checks.after(done, settings)
    return "two refused, one ran"


async def no_passthrough(gateway: Gateway, settings: dict[str, str]) -> str:
    first, _ = series()
    done = await run(gateway, spec("logical", [pool("train", first, gpus=2)]), CODE / "machines")
    _ended(done, "SUCCEEDED", None)
    assert all(pod["gpus"] == 0 for pod in done.job["pods"]), done.job["pods"]
    assert "gpus 2" in done.log, done.log
    await checks.after(done, settings)
    return "logical GPUs only"


def _ended(done: Followed, state: str, reason: str | None) -> None:
    job = done.job
    found = job["reason"]["code"] if job["reason"] else None
    told = json.dumps({"state": job["state"], "reason": job["reason"], "log": done.lines[-20:]}, indent=1)
    assert (job["state"], found) == (state, reason), f"wanted {state} {reason}, got {told}"


def rows() -> list[Row]:
    """Every row, those of one variant together."""
    http = os.environ.get("LOOP_HTTP_S3_ENDPOINT") or os.environ["FORGE_S3_ENDPOINT"]
    claims = {
        "FORGE_K8S_STORAGE_PVC": os.environ.get("LOOP_STORAGE_PVC", "starforge-storage"),
        "FORGE_K8S_CORPUS_PVC": os.environ.get("LOOP_CORPUS_PVC", "starforge-corpus"),
    }
    plain = {"FORGE_S3_ENDPOINT": http, "FORGE_S3_CA_FILE": ""} if http.startswith("http:") else {}
    gpus = os.environ.get("FORGE_K8S_GPU_PASSTHROUGH", "1") not in ("0", "false")
    return [
        Row("two pools, code by HTTPS working_dir", digits, needs_gpus=True, needs_https=True),
        Row("a primary pool of two machines", two_machines, needs_gpus=gpus),
        Row("user code that fails", failing),
        Row("cancel while running", cancel),
        Row("a series that no node has", no_such_series, {"FORGE_QUEUE": "off"}),
        Row("two pools, code by HTTP and init containers", digits, plain, needs_http=True),
        Row("storage root and corpus", storage, claims),
        Row("storage that is not shared", not_shared, claims | {"FORGE_K8S_STORAGE_SHARED": "false"}),
        Row("no GPU passthrough", no_passthrough, {"FORGE_K8S_GPU_PASSTHROUGH": "0"}),
    ]


__all__ = ["Row", "files", "rows"]
