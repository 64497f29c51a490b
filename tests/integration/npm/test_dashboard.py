"""The guide's dashboard on `starforge dev --simulate`, with the real clients, cut and resumed in every way."""

import contextlib
import functools
import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from starforge.adapters.settings import load_settings
from starforge.adapters.wiring import build, now
from tests.integration.npm.node import HERE, installed, with_modules
from tests.integration.npm.proxy import Proxy, proxied
from tests.integration.test_dev import dev
from tests.servers import free_port

DASHBOARD = HERE.parents[2] / "docs" / "guide" / "dashboard"
PATIENCE_S = 300
"""Only a test that fails waits for so long."""
FOLLOWED = 4
# Without the revision: a write that changes nothing of these, a lease for example, raises it and is not told.
ROW = "id name state outcome attempt gpus reason { code message } progress { step total } podCounts { ready }"
TABS = {"active": "{active: true}", "canceled": "{states: [CANCELED]}", "all": "null"}
COUNTS = "{ all: jobs(first: 1) { totalCount } active: jobs(first: 1, filter: {active: true}) { totalCount } }"
State = dict[str, Any]


@dataclass
class World:
    """A `starforge dev` whose parts a test may stop and start."""

    url: str
    env: dict[str, str]
    pids: dict[str, int]

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    def ask(self, query: str, **variables: Any) -> Any:
        answer = httpx.post(self.url, json={"query": query, "variables": variables}, timeout=60).json()
        assert "errors" not in answer, answer
        return answer["data"]

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """Nothing happens in it: whatever submits, works, observes and ticks is stopped; the gateway is not."""
        stopped = [pid for name, pid in self.pids.items() if name in ("busy", "worker", "beat", "watch")]
        assert len(stopped) == 4
        for pid in stopped:
            os.killpg(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in stopped:
                os.killpg(pid, signal.SIGCONT)

    @contextmanager
    def gateway(self, port: int) -> Iterator[None]:
        """One more gateway, which is killed at the end and not asked to go."""
        command = [sys.executable, "-m", "starforge.cli.main", "api", "--dev"]
        env = self.env | {"FORGE_PORT": str(port)}
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            until_ready(port, process)
            yield
        finally:
            process.kill()
            process.wait(timeout=30)

    def forget_the_feed(self) -> None:
        """As retention does, but now."""
        parts = build(load_settings(self.env))
        try:
            parts.ports.store.prune_feed(before=now() + timedelta(seconds=1))
        finally:
            parts.close()


def until_ready(port: int, process: "subprocess.Popen[bytes]") -> None:
    """Nothing tells when a gateway answers, so it is asked for."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "the gateway ended before it was ready"
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=5).status_code == 200:
                return
        time.sleep(0.1)
    raise AssertionError(f"the gateway was not ready after {PATIENCE_S} s")


def children_of(pid: int) -> dict[str, tuple[int, dict[str, str]]]:
    """The processes that a `starforge dev` started, by name, with their environments."""
    found = {}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        words = Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
        env = dict(
            pair.split("=", 1) for pair in Path(f"/proc/{child}/environ").read_bytes().decode().split("\0") if pair
        )
        name = next((name for name in ("api", "watch", "--beat", "worker", "-c") if name in words), "redis")
        found[{"--beat": "beat", "-c": "busy"}.get(name, name)] = (int(child), env)
    return found


class Page:
    """page.mjs in a process of its own."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self._told: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, name="page")
        self._reader.start()
        self.state: State = {}

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._told.put(line)
        self._told.put(None)

    def order(self, do: str, **what: Any) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps({"do": do, **what}) + "\n")
        self._process.stdin.flush()

    def until(self, what: str, holds: Callable[[State], bool]) -> State:
        """The first state from here on that holds."""
        deadline = time.monotonic() + PATIENCE_S
        while not (self.state and holds(self.state)):
            self.state = self._next(what, deadline) or self.state
        return self.state

    def lines(self, job: str) -> list[State]:
        self.order("lines", id=job)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            told = self._next(f"the lines of {job}", deadline)
            if "lines" in told:
                lines: list[State] = told["lines"]
                return lines
            self.state = told

    def _next(self, what: str, deadline: float) -> State:
        try:
            line = self._told.get(timeout=max(0, deadline - time.monotonic()))
        except queue.Empty:
            raise AssertionError(f"the page never showed: {what}; last it showed {brief(self.state)}") from None
        assert line is not None, f"the page ended before it showed: {what}"
        told: State = json.loads(line)
        return told

    def close(self) -> None:
        """Everything is closed, so that node ends by itself."""
        assert self._process.stdin
        self._process.stdin.close()
        assert self._process.wait(timeout=30) == 0
        self._reader.join(timeout=30)


def brief(state: State) -> str:
    tables = {key: (one["phase"], one["problem"], len(one["rows"])) for key, one in state.get("tables", {}).items()}
    pages = {key: (one["phase"], one["lines"], one["isWhole"]) for key, one in state.get("pages", {}).items()}
    return f"tables {tables}, pages {pages}, counts {state.get('counts')}"


@pytest.fixture(scope="module")
def modules(request: pytest.FixtureRequest) -> Path:
    assert request.config.cache
    return installed(request.config.cache)


@pytest.fixture(scope="module")
def world(modules: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with dev(tmp_path_factory.mktemp("dev"), "--simulate", "20") as (process, url):
        children = children_of(process.pid)
        yield World(url, children["api"][1], {name: pid for name, (pid, _) in children.items()})


@contextmanager
def opened(url: str, kind: str, place: Path) -> Iterator[Page]:
    command = ["node", "page.mjs", url, kind]
    with subprocess.Popen(command, cwd=place, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            page = Page(process)
            yield page
            page.close()
        finally:
            process.kill()


def fresh_rows(world: World, tab: str) -> list[State]:
    query = f"{{ jobs(first: 100, filter: {TABS[tab]}) {{ nodes {{ {ROW} }} }} }}"
    rows: list[State] = world.ask(query)["jobs"]["nodes"]
    for row in rows:
        # Told once a second at most: the last report before the world stood still may be waiting for its second.
        if row["outcome"] is None:
            del row["progress"]
    return rows


def fresh_lines(world: World, job: str) -> list[State]:
    query = """query($id: ID!, $after: String) { job(id: $id) {
        logs(first: 1000, after: $after) { nodes { number text } pageInfo { hasNextPage endCursor } } } }"""
    lines: list[State] = []
    after = None
    while True:
        page = world.ask(query, id=job, after=after)["job"]["logs"]
        lines += page["nodes"]
        if not page["pageInfo"]["hasNextPage"]:
            return lines
        after = page["pageInfo"]["endCursor"]


def shaped(value: Any, like: Any) -> Any:
    """A value with the fields alone that `like` has."""
    if isinstance(like, dict) and isinstance(value, dict):
        return {key: shaped(value[key], like[key]) for key in like}
    return value


def all_live(state: State) -> bool:
    tables = all(one["phase"] == "LIVE" for one in state["tables"].values())
    return tables and all(one["phase"] == "LIVE" for one in state["pages"].values())


def goes_on(before: State) -> Callable[[State], bool]:
    """Whether everything is live again and each log has grown since, or is whole."""
    return lambda state: (
        all_live(state)
        and all(one["isWhole"] or one["lines"] > before["pages"][job]["lines"] for job, one in state["pages"].items())
    )


def cut_and_go_on(page: Page, proxy: Proxy, change: Callable[[], None] = lambda: None) -> None:
    before = page.state
    page.state = {}
    change()
    proxy.cut()
    page.until("that it goes on after a cut", goes_on(before))


def running_jobs(page: Page) -> list[str]:
    """Jobs that have a good part of their run before them."""

    def found(state: State) -> list[str]:
        rows = state["tables"]["active"]["rows"] if "active" in state["tables"] else []
        return [row["id"] for row in rows if row["state"] == "RUNNING" and fraction(row) < 0.5]

    return found(page.until("enough running jobs", lambda state: len(found(state)) >= FOLLOWED))[:FOLLOWED]


def fraction(row: State) -> float:
    return ((row["progress"] or {}).get("fraction")) or 0.0


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("kind", ["ws", "sse"])
def test_the_dashboard_stays_true_over_cuts_restarts_and_a_lost_feed(
    world: World, modules: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = with_modules(tmp_path / "page", modules, HERE / "page.mjs", DASHBOARD / "dashboard.js")
    with proxied(world.port) as proxy, opened(f"http://127.0.0.1:{proxy.port}/graphql", kind, place) as page:
        for tab in TABS:
            page.order("show", tab=tab, pageSize=100)
        followed = running_jobs(page)
        for job in followed:
            page.order("open", id=job)
        page.until("the jobs' logs", lambda state: all(state["pages"].get(job, {}).get("lines") for job in followed))

        for _ in range(3):
            cut_and_go_on(page, proxy)
        survives_a_gateway_that_is_killed(world, page, proxy)
        survives_a_lost_feed(world, page, proxy)

        for job in followed:
            world.ask("mutation($id: ID!) { cancelJob(id: $id, graceSeconds: 0) { status } }", id=job)
        cut_and_go_on(page, proxy)
        page.until("whole logs", lambda state: all(one["isWhole"] for one in state["pages"].values()))
        page.until("the ends", lambda state: all(one["job"]["endedAt"] for one in state["pages"].values()))

        with world.standing_still():
            shows_what_a_query_gives(world, page)
            logs = {job: page.lines(job) for job in followed}
            for job, lines in logs.items():
                assert [line["number"] for line in lines] == list(range(1, len(lines) + 1))
                assert [shaped(line, {"number": 0, "text": ""}) for line in lines] == fresh_lines(world, job)
        rows, lines_in_all = len(page.state["tables"]["all"]["rows"]), sum(map(len, logs.values()))
        with capsys.disabled():
            sys.stdout.write(
                f"\ndashboard over {kind}: {proxy.cuts} connections cut, {rows} rows as a query gives them, "
                f"{lines_in_all} log lines of {len(logs)} jobs, each once\n"
            )


def shows_what_a_query_gives(world: World, page: Page) -> None:
    for tab in TABS:
        fresh = fresh_rows(world, tab)
        try:
            page.until(f"the table {tab} as a query gives it", functools.partial(shows, tab=tab, fresh=fresh))
        except AssertionError as never:
            never.add_note(str(differing(page.state, tab, fresh)))
            raise
    counted = world.ask(COUNTS)
    page.until("the counts", functools.partial(counts, counted=counted))


def shows(state: State, *, tab: str, fresh: list[State]) -> bool:
    return not differing(state, tab, fresh)


def differing(state: State, tab: str, fresh: list[State]) -> list[tuple[State | None, State | None]]:
    """Rows as the page shows them beside those of the query, where they differ."""
    pairs = itertools.zip_longest(state["tables"][tab]["rows"], fresh)
    return [(row, like) for row, like in pairs if shaped(row, like) != like]


def counts(state: State, *, counted: State) -> bool:
    return all(state["counts"].get(tab, {}).get("totalCount") == one["totalCount"] for tab, one in counted.items())


def survives_a_gateway_that_is_killed(world: World, page: Page, proxy: Proxy) -> None:
    """Cursors of one gateway are good at the next, and at the first again when that one dies."""
    port, first = free_port(), proxy.target
    with world.gateway(port):
        cut_and_go_on(page, proxy, lambda: setattr(proxy, "target", port))
        before = page.state
    page.state = {}
    page.until("that it reconnects", lambda state: not all_live(state))
    proxy.target = first
    page.until("that it goes on at another gateway", goes_on(before))


def survives_a_lost_feed(world: World, page: Page, proxy: Proxy) -> None:
    """Away for longer than the feed is kept, it loads again; log lines have cursors of their own."""
    before = page.state
    page.state = {}
    proxy.refuses = True
    proxy.cut()
    page.until("that it reconnects", lambda state: not all_live(state))
    submitted = submit(world)
    world.forget_the_feed()
    proxy.refuses = False
    state = page.until("that it goes on after a reload", goes_on(before))
    assert all(one["loads"] > before["tables"][tab]["loads"] for tab, one in state["tables"].items())
    page.until("the job that was submitted meanwhile", lambda state: any(
        row["id"] == submitted for row in state["tables"]["all"]["rows"]
    ))  # fmt: skip


def submit(world: World) -> str:
    spec = {
        "name": "meanwhile",
        "command": ["true"],
        "pools": [{"name": "p", "series": "h200", "machines": 1, "gpusPerMachine": 1}],
    }
    code = {"files": [{"path": "main.py", "content": "print(1)\n"}]}
    query = "mutation($input: SubmitJobInput!) { submitJob(input: $input) { job { id } userErrors { message } } }"
    answer = world.ask(query, input={"spec": spec, "code": code})["submitJob"]
    assert answer["job"], answer
    return str(answer["job"]["id"])
