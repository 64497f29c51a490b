"""Verify the Capsule, claim the attempt, run the command, report how it ended.

Exit codes: the command's own (128+n for signal n, 126 and 127 as a shell has them); 113 claimed before, 114 could not
claim in time, 115 the Capsule or the attempt file is not as it was made.
"""

from __future__ import annotations

import sys
import time

from .attempt import Attempt, AttemptInvalid, read_attempt, read_command
from .claim import Claimed, claim
from .command import run_command
from .manifest import capsule_faults
from .memory import oom_kills
from .relay import Relay
from .signals import SignalRoom, Stopped
from .stream import open_stream

EXIT_CLAIMED = 113
EXIT_UNCLAIMED = 114
EXIT_CORRUPT = 115


def main() -> int:
    signals = SignalRoom()
    signals.install()
    try:
        attempt = read_attempt()
    except AttemptInvalid as error:
        print(f"starforge: {error}", file=sys.stderr, flush=True)
        return EXIT_CORRUPT
    signals.grace_s = attempt.cancel_grace_s
    relay = Relay(open_stream(attempt.stream), nonce=attempt.nonce)
    try:
        return _run(attempt, relay, signals)
    except Stopped as stopped:
        signals.enter_starting()  # another signal must not cut the report off
        relay.say(f"stopped by signal {stopped.signal} before the command was started")
        return _report_exit(relay, stopped.signal, by_signal=True)


def _run(attempt: Attempt, relay: Relay, signals: SignalRoom) -> int:
    faults = capsule_faults(expected_digest=attempt.capsule)
    if faults:
        return _refuse(relay, "corrupt", _sentence(faults), EXIT_CORRUPT)
    try:
        command = read_command()
    except AttemptInvalid as error:
        return _refuse(relay, "corrupt", str(error), EXIT_CORRUPT)
    claimed = claim(attempt.claim, until=attempt.claim_until, say=relay.say)
    if claimed is not Claimed.YES:
        code = EXIT_CLAIMED if claimed is Claimed.BEFORE else EXIT_UNCLAIMED
        return _refuse(relay, claimed.value, claimed.sentence, code)
    signals.enter_starting()
    relay.report({"type": "started", "at": time.time()})
    kills = oom_kills()
    returncode = run_command(command, relay, signals)
    out_of_memory = returncode != 0 and oom_kills() > kills
    return _report_exit(relay, abs(returncode), by_signal=returncode < 0, out_of_memory=out_of_memory)


def _refuse(relay: Relay, why: str, message: str, code: int) -> int:
    relay.say(message)
    relay.report({"type": "refused", "why": why, "message": message})
    return code


def _report_exit(relay: Relay, number: int, *, by_signal: bool, out_of_memory: bool = False) -> int:
    code, signal = 128 + number if by_signal else number, number if by_signal else None
    relay.report({"type": "exit", "code": code, "signal": signal, "oom": out_of_memory, "at": time.time()})
    return code


def _sentence(faults: list[str]) -> str:
    more = f", and {len(faults) - 5} more" if len(faults) > 5 else ""
    return f"the Capsule is not as it was made, so nothing was started: {'; '.join(faults[:5])}{more}"


if __name__ == "__main__":
    sys.exit(main())
