"""`starforge demo`: StarForge on this machine, and an example that trains on it."""

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from starforge.cli.answers import Json
from starforge.cli.consoles import out_console
from starforge.cli.exits import OUTCOMES, ExitCode
from starforge.cli.following import follow_job
from starforge.cli.gateway import Gateway
from starforge.cli.screens.live import LiveScreen
from starforge.cli.screens.plain import PlainScreen
from starforge.cli.submitting import submit
from starforge.domain.errors import Outside, Problem, UserMistake

EXAMPLES = Path(__file__).parents[3] / "examples"


@dataclass(frozen=True)
class Result:
    """How the example ended; `accuracy` 0 to 1 as it last reported it, `seconds` from submit to its end."""

    state: str
    accuracy: float | None
    seconds: float

    def line(self) -> str:
        accuracy = "none" if self.accuracy is None else f"{self.accuracy:.4f}"
        return f"demo: {self.state} accuracy={accuracy} seconds={self.seconds:.1f}"


def run_demo(url: str, example_dir: Path, console: Console) -> Result:
    """Submits the example to the gateway at `url` and follows it to its end; the last line printed is the result's."""
    started = time.monotonic()
    with Gateway(url, os.environ.get("FORGE_BOOTSTRAP_TOKEN")) as gateway:
        job = submit(gateway, example_dir, console=console).job
        with LiveScreen(console) if console.is_terminal else PlainScreen() as screen:
            ended = asyncio.run(follow_job(gateway, job["id"], screen))
    result = Result(ended["state"], _accuracy(ended), time.monotonic() - started)
    console.print(result.line(), soft_wrap=True)
    return result


def demo(*, example: str, keep: bool, port: int, data: Path | None) -> ExitCode:
    """Starts everything, runs the example, and stops everything, unless `keep` says to wait for Ctrl-C."""
    directory, console = _example(example), out_console()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that it stops what it started then, too
    with _data(data) as kept, _server(port, kept, console) as url:
        result = run_demo(url, directory, console)
        if keep:
            _wait_for_interrupt(url, console)
    return OUTCOMES[result.state]


@contextmanager
def _server(port: int, data: Path, console: Console) -> Iterator[str]:
    """The address of a StarForge on this machine, with a word while it starts and stops; Outside if it can't start."""
    from starforge.cli.dev import dev_running

    with ExitStack() as stack:
        with console.status("Starting StarForge on this machine …"):
            try:
                server = stack.enter_context(dev_running(port=port, data=data, env=os.environ))
            except RuntimeError as failed:
                raise Outside(str(failed)) from failed
        yield server.url
        with console.status("Stopping it …"):
            stack.close()


def _wait_for_interrupt(url: str, console: Console) -> None:
    console.print(f"It goes on at {url} until Ctrl-C.", soft_wrap=True)
    try:
        signal.pause()
    except KeyboardInterrupt:
        return


def _accuracy(job: Json) -> float | None:
    reported = job["progress"]["metrics"] if job["progress"] else []
    return next((metric["value"] for metric in reported if metric["name"] == "accuracy"), None)


def _example(name: str) -> Path:
    """The directory of an example; UserMistake if there is none of that name."""
    for directory in (Path(name), Path("examples") / name, EXAMPLES / name):
        if (directory / "starforge.yaml").is_file():
            return directory
    raise UserMistake([Problem("NOT_FOUND", ("example",), f"There is no example {name} with a starforge.yaml in it.")])


@contextmanager
def _data(given: Path | None) -> Iterator[Path]:
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="starforge-demo-", ignore_cleanup_errors=True) as scratch:
        yield Path(scratch)
