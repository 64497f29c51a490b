"""A stand-in for runner.pex: claims its attempt, writes frames to the head's log, and ends as the file `mode` says."""

# ruff: noqa: S310

import json
import os
import signal
import sys
import time
import urllib.request
from pathlib import Path

attempt = json.loads(Path(os.environ["STARFORGE_ATTEMPT_FILE"]).read_text())
stream = os.open(attempt["stream"], os.O_WRONLY | os.O_APPEND)


def say(text: str) -> None:
    os.write(stream, f"::starforge-out {time.time():.6f} . {text}\n".encode())


def wire(**message: object) -> None:
    say("::starforge:: " + json.dumps({**message, "at": time.time(), "nonce": attempt["nonce"]}))


def claim() -> None:
    request = urllib.request.Request(
        attempt["claim"]["url"], data=b"", method="PUT", headers=attempt["claim"]["headers"]
    )
    with urllib.request.urlopen(request, timeout=30):
        pass


def stopped(signum: int, _frame: object) -> None:
    say("stopped in time")
    wire(type="exit", code=128 + signum, signal=signum)
    sys.exit(128 + signum)


signal.signal(signal.SIGTERM, stopped)
claim()
wire(type="started")
say(f"variable {os.environ['TRICKY']!r}")
for number in range(20):
    say(f"line {number}")
if Path("mode").read_text() == "wait":
    say("ready to be stopped")
    signal.pause()
wire(type="exit", code=0, signal=None)
