"""Drives the load generator and the publisher, each a process of its own off the server's core."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "starforge-bench"
ANSWER_S = 60


class Tool:
    """A child that takes a command a line on stdin and answers with a JSON object a line."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True)
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._answers.put(json.loads(line))
        self._answers.put(None)

    def send(self, command: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def wait(self, event: str, timeout_s: float = ANSWER_S) -> dict[str, Any]:
        """The next answer of this kind; TimeoutError if there is none in time."""
        while True:
            try:
                answer = self._answers.get(timeout=timeout_s)
            except queue.Empty:
                raise TimeoutError(f"no `{event}` within {timeout_s} s") from None
            if answer is None:
                raise RuntimeError(f"{self._process.args!r} ended with code {self._process.wait(timeout=5)}")
            if answer["event"] == event:
                return answer

    def close(self) -> None:
        """End it by the end of its stdin."""
        if self._process.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=10)


def build_loadgen() -> Path:
    """Compile the load generator; quick when nothing changed."""
    CACHE.mkdir(parents=True, exist_ok=True)
    target = CACHE / "loadgen"
    subprocess.run(["go", "build", "-o", str(target), "."], cwd=HERE / "loadgen", check=True, timeout=300)
    return target


@contextlib.contextmanager
def loadgen(folder: Path, name: str, **config: Any) -> Iterator[Tool]:
    """A load generator at work; see loadgen/main.go for what `config` may hold."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps(config))
    tool = Tool([str(CACHE / "loadgen"), str(path)])
    try:
        yield tool
    finally:
        tool.close()


@contextlib.contextmanager
def publisher(folder: Path, env: Mapping[str, str], **config: Any) -> Iterator[Tool]:
    """A publisher at work; see publisher.py. `stop` makes it tell what it published."""
    path = folder / "publisher.json"
    path.write_text(json.dumps(config))
    tool = Tool([sys.executable, str(HERE / "publisher.py"), str(path)], env={**os.environ, **env})
    try:
        yield tool
    finally:
        tool.close()
