"""`starforge playground chat`: what goes to the playground, and what a person sees of its answers."""

import json
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from typer.testing import CliRunner, Result

from starforge.cli.main import app
from tests.playground_servers import EVENTS, PATIENCE_S, Heard, Script, scripted
from tests.unit.cli.playground_answers import a_playground

TOKEN = "good"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    with scripted() as there:
        monkeypatch.setenv("FORGE_URL", there.url)
        monkeypatch.setenv("FORGE_TOKEN", TOKEN)
        yield there


def answers(script: Script, say: Callable[[Heard], None], **playground: object) -> list[Heard]:
    """Has the gateway tell of a playground that answers by `say`; the requests to it are in what this returns."""
    asked = list[Heard]()

    def answer(heard: Heard) -> None:
        assert heard.named("authorization") == [f"Bearer {TOKEN}"]
        if heard.path == "/graphql":
            feed = {"at": "2026-03-01T09:30:00.000Z"}
            heard.whole(json.dumps({"data": {"feed": feed, "playground": a_playground(**playground)}}).encode())
        else:
            assert heard.line == "POST /playgrounds/play-1/v1/chat/completions HTTP/1.1"
            asked.append(heard)
            say(heard)

    script.answer = answer
    return asked


def says(heard: Heard, *pieces: str) -> None:
    for piece in pieces:
        heard.event(json.dumps({"choices": [{"index": 0, "delta": {"content": piece}}]}).encode())


def says_all(heard: Heard, *pieces: str) -> None:
    heard.send(EVENTS)
    says(heard, *pieces)
    heard.chunk(b": keep-alive\n\n")
    heard.event(b'{"choices": [], "usage": {}}')
    heard.event(b"[DONE]")
    heard.end()


def run(*words: str, given: str | None = None) -> Result:
    return CliRunner().invoke(app, ["playground", "chat", "play-1", *words], input=given)


def test_one_message(script: Script) -> None:
    asked = answers(script, lambda heard: says_all(heard, "Hel", "lo\x1b[2J"))
    result = run("-m", "hi", "--system", "be kind", "--max-tokens", "9", "--temperature", "0.5")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "Hello\\x1b[2J\n", "")
    assert json.loads(asked[0].body) == {
        "model": "org/tiny", "stream": True, "max_tokens": 9, "temperature": 0.5,
        "messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "hi"}],
    }  # fmt: skip


def test_the_conversation_is_kept(script: Script) -> None:
    asked = answers(script, lambda heard: says_all(heard, f"answer {len(asked)}"))
    result = run(given="one\n\ntwo\n")
    assert (result.exit_code, result.stdout) == (0, "answer 1\nanswer 2\n")
    assert [message["content"] for message in json.loads(asked[1].body)["messages"]] == ["one", "answer 1", "two"]


def test_an_answer_that_breaks_off(script: Script) -> None:
    def say(heard: Heard) -> None:
        heard.send(EVENTS)
        says(heard, "Hel")
        heard.event(b'{"error": {"message": "The API server is away."}}')
        heard.end()

    answers(script, say)
    result = run("-m", "hi")
    assert (result.exit_code, result.stdout) == (4, "Hel\n")
    assert result.stderr == "The answer broke off: The API server is away.\n"


def test_a_connection_that_is_cut(script: Script) -> None:
    def say(heard: Heard) -> None:
        heard.send(EVENTS)
        heard.cut()

    answers(script, say)
    assert run("-m", "hi").exit_code == 4


def test_what_is_refused(script: Script) -> None:
    refusal = json.dumps({"error": {"message": "It has ended.", "type": "x", "param": None, "code": "x"}}).encode()
    answers(script, lambda heard: heard.whole(refusal, "409 Conflict"))
    result = run("-m", "hi")
    assert (result.exit_code, result.stderr) == (2, "It has ended.\n")


def test_one_that_does_not_answer_yet(script: Script) -> None:
    asked = answers(script, says_all, state="STARTING")
    result = run("-m", "hi")
    assert (result.exit_code, result.stderr) == (2, "play-1 is STARTING and does not answer.\n")
    assert asked == []


TAKES_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "starforge.cli.main", *sys.argv[1:]])
"""


class Terminal:
    """The verb on a terminal of its own."""

    def __init__(self, *words: str) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKES_TERMINAL, *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def write(self, text: bytes) -> None:
        os.write(self._ours, text)

    def read_until(self, wanted: bytes) -> None:
        """Return when it shows that; OSError when it has ended."""
        seen = b""
        while wanted not in seen:
            seen += os.read(self._ours, 1024)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@pytest.fixture
def terminal(script: Script) -> Iterator[Terminal]:
    there = Terminal("playground", "chat", "play-1")
    yield there
    there.close()


def test_ctrl_c_ends_an_answer_and_ctrl_d_the_talk(script: Script, terminal: Terminal) -> None:
    ended = threading.Event()

    def say(heard: Heard) -> None:
        if len(asked) > 1:
            says_all(heard, "And on.")
            return
        heard.send(EVENTS)
        says(heard, "For ever")
        heard.gone()
        ended.set()

    asked = answers(script, say)
    terminal.read_until(b"> ")
    terminal.write(b"hi\n")
    terminal.read_until(b"For ever")
    terminal.write(b"\x03")
    terminal.read_until(b"> ")
    assert ended.wait(PATIENCE_S)
    terminal.write(b"more\n")
    terminal.read_until(b"And on.")
    terminal.read_until(b"> ")
    terminal.write(b"\x04")
    assert terminal.process.wait(PATIENCE_S) == 0
    said = [message["content"] for message in json.loads(asked[1].body)["messages"]]
    assert said == ["hi", "For ever", "more"]
