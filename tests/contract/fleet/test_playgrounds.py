"""What the rest of the platform relies on for playgrounds, on the fleets that need no cluster."""

import http.client
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from starforge.adapters.local.fleet import LocalFleet
from starforge.adapters.local.rundir import RunDir
from starforge.adapters.simulated.fleet import SimulatedFleet
from starforge.domain.errors import FleetRefused
from starforge.domain.names import playground_id, playground_run, run_name
from starforge.domain.observation import LogSeen, PodPhase, PodRole, RunPhase, RunSeen, Seen
from starforge.domain.playground import SERVER
from starforge.domain.playground_spec import PlaygroundDraft, freeze_playground
from starforge.domain.ports import Fleet, PlaygroundOrder
from starforge.domain.spec import Deadlines, FleetDefaults
from tests.contract.fleet.plug import Code, FleetUnderTest, Watching

DEFAULTS = FleetDefaults("here", None, 1, "2Gi", "1Gi", Deadlines(0, 1800, 0), 10, has_images=False)
SERVES = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/end":
            import os; os._exit(7)
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()

args = sys.argv[1:]
print("serving", *args, flush=True)
HTTPServer((args[args.index("--host") + 1], int(args[args.index("--port") + 1])), Handler).serve_forever()
"""


@pytest.fixture
def local(tmp_path: Path) -> LocalFleet:
    script = tmp_path / "server.py"
    script.write_text(SERVES)
    command = shlex.join([sys.executable, str(script)])
    return LocalFleet(tmp_path / "runs", gpus={"h200": 8}, defaults=DEFAULTS, playground_command=command)


@pytest.fixture(params=["local", "simulated"])
def fleet(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fleet]:
    if request.param == "local":
        yield request.getfixturevalue("local")
    else:
        yield SimulatedFleet(defaults=DEFAULTS, state=tmp_path / "state.db", clock=lambda: datetime.now(UTC))


def an_order(gpus: int = 1) -> PlaygroundOrder:
    spec = freeze_playground(PlaygroundDraft("chat", "h200", gpus, "org/model"), DEFAULTS)
    run = playground_run(playground_id(os.urandom(16).hex()))
    return PlaygroundOrder(run, run_name("chat", run), spec)


def watching(fleet: Fleet) -> Watching:
    def no_code(_: Code) -> None: ...

    return Watching(FleetUnderTest(fleet, no_code, 60.0))  # type: ignore[arg-type]


def is_ready(order: PlaygroundOrder, seen: Seen) -> bool:
    return isinstance(seen, RunSeen) and seen.run == order.run and any(pod.ready for pod in seen.pods)


def remove(fleet: Fleet, watch: Watching, order: PlaygroundOrder) -> None:
    fleet.delete(order.run)
    watch.until("that nothing is left", lambda _: not fleet.remaining(order.run))


def test_it_is_one_pod_that_becomes_ready_and_goes(fleet: Fleet) -> None:
    order, watch = an_order(), watching(fleet)
    first = fleet.launch_playground(order)
    seen = watch.until("that it is ready", lambda seen: is_ready(order, seen))
    assert isinstance(seen, RunSeen)
    (pod,) = seen.pods
    assert (pod.name, pod.role, pod.phase, pod.pool, pod.gpus) == (
        order.name, PodRole.PLAYGROUND, PodPhase.RUNNING, None, 1,
    )  # fmt: skip
    assert [container.name for container in pod.containers] == [SERVER]
    assert fleet.launch_playground(order) == first
    assert [found.run for found in fleet.ours("forge")][:1] == [order.run]
    assert fleet.look(order.run).phase is RunPhase.RUNNING
    remove(fleet, watch, order)
    assert fleet.look(order.run).phase is RunPhase.ABSENT


def test_its_log_is_that_of_its_container(fleet: Fleet) -> None:
    order, watch = an_order(), watching(fleet)
    fleet.launch_playground(order)
    seen = watch.until("a line", lambda seen: isinstance(seen, LogSeen) and bool(seen.lines))
    assert isinstance(seen, LogSeen)
    assert (seen.source, seen.pod, seen.container) == (f"pod/{order.name}/{SERVER}", order.name, SERVER)
    remove(fleet, watch, order)


def test_what_is_not_there_is_removed_in_peace(fleet: Fleet) -> None:
    fleet.delete(an_order().run)
    assert list(fleet.remaining(an_order().run)) == []


def get(tmp_path: Path, path: str) -> int:
    """The status with which the only playground of a local fleet answers."""
    (run,) = [path for path in (tmp_path / "runs").iterdir() if not path.name.startswith(".")]
    status = RunDir(run).status()
    assert status
    assert status.address
    connection = http.client.HTTPConnection(status.address, timeout=10)
    connection.request("GET", path)
    return connection.getresponse().status


def test_a_local_one_is_a_process_that_answers_at_its_address(local: LocalFleet, tmp_path: Path) -> None:
    order, watch = an_order(), watching(local)
    local.launch_playground(order)
    watch.until("that it is ready", lambda seen: is_ready(order, seen))
    assert get(tmp_path, "/health") == 200
    remove(local, watch, order)


def test_a_local_server_that_ends_has_failed_with_its_code(local: LocalFleet, tmp_path: Path) -> None:
    order, watch = an_order(), watching(local)
    local.launch_playground(order)
    watch.until("that it is ready", lambda seen: is_ready(order, seen))
    with pytest.raises(http.client.RemoteDisconnected):
        get(tmp_path, "/end")
    seen = watch.until("its end", lambda seen: isinstance(seen, RunSeen) and seen.phase is RunPhase.FAILED)
    assert isinstance(seen, RunSeen)
    ended = seen.pods[0].containers[0].termination
    assert ended
    assert (seen.pods[0].phase, ended.exit_code) == (PodPhase.FAILED, 7)
    remove(local, watch, order)


def test_a_killed_supervisor_leaves_no_local_server(local: LocalFleet, tmp_path: Path) -> None:
    order, watch = an_order(), watching(local)
    local.launch_playground(order)
    watch.until("that it is ready", lambda seen: is_ready(order, seen))
    (run,) = [path for path in (tmp_path / "runs").iterdir() if not path.name.startswith(".")]
    status = RunDir(run).status()
    assert status
    assert status.runner
    os.kill(status.supervisor.pid, signal.SIGKILL)
    seen = watch.until("its end", lambda seen: isinstance(seen, RunSeen) and seen.phase is RunPhase.RUNNING)
    assert isinstance(seen, RunSeen)
    watch.until("that its server is gone", lambda _: status.runner is not None and not status.runner.alive)
    remove(local, watch, order)


def test_local_ones_wait_for_gpus_as_jobs_do(local: LocalFleet) -> None:
    one, other, watch = an_order(8), an_order(8), watching(local)
    local.launch_playground(one)
    watch.until("that it is ready", lambda seen: is_ready(one, seen))
    local.launch_playground(other)
    watch.until("that it waits", lambda seen: isinstance(seen, RunSeen) and seen.run == other.run)
    remove(local, watch, one)
    watch.until("that the other is ready", lambda seen: is_ready(other, seen))
    remove(local, watch, other)


def test_a_machine_without_the_program_says_so(tmp_path: Path) -> None:
    fleet = LocalFleet(tmp_path / "runs", gpus={"h200": 8}, defaults=DEFAULTS, playground_command="no-such-server x")
    with pytest.raises(FleetRefused, match="no-such-server"):
        fleet.launch_playground(an_order())
