"""The claim: whoever makes the attempt's claim object first may run it, and nobody else ever."""

from __future__ import annotations

import http.client
import os
import random
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from enum import Enum

from .attempt import ClaimTarget

REQUEST_TIMEOUT_S = 10.0
FIRST_PAUSE_S = 0.2
LONGEST_PAUSE_S = 10.0


class Claimed(Enum):
    """YES: run it. BEFORE: it ran before. NOT: nobody could be asked in time."""

    YES = "yes"
    BEFORE = "claimed"
    NOT = "unclaimed"

    @property
    def sentence(self) -> str:
        if self is Claimed.BEFORE:
            return "this attempt was claimed before, so it is not started again; retry the job for a new attempt"
        return "this attempt could not be claimed in time, so it was not started; see why in the lines above"


class Unreachable(Exception):
    """The claim's answer is not known; `str()` says why, without the URL."""


def claim(
    target: ClaimTarget,
    *,
    until: float | None,
    say: Callable[[str], None],
    clock: Callable[[], float] = time.time,
    pause: Callable[[float], None] = time.sleep,
) -> Claimed:
    """Claims, trying again with growing pauses until `until` (epoch seconds) while there is no clear answer."""
    wait, told = FIRST_PAUSE_S, ""
    while True:
        try:
            return _claim_once(target)
        except Unreachable as error:
            if str(error) != told:
                told = str(error)
                say(f"can't claim this attempt yet, trying again: {told}")
        left = None if until is None else until - clock()
        if left is not None and left <= 0:
            return Claimed.NOT
        jittered = wait * random.uniform(0.5, 1.0)
        pause(jittered if left is None else min(jittered, left))
        wait = min(wait * 2, LONGEST_PAUSE_S)


def _claim_once(target: ClaimTarget) -> Claimed:
    return _create(target.path) if target.path is not None else _put(target)


def _create(path: str) -> Claimed:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        return Claimed.BEFORE
    except OSError as error:
        raise Unreachable(f"the claim file can't be made: {error.strerror}") from error
    return Claimed.YES


def _put(target: ClaimTarget) -> Claimed:
    # Without a body, as urllib would add a Content-Type of its own that the signature may not allow.
    request = urllib.request.Request(target.url or "", headers=target.headers, method="PUT")
    try:
        with _opener(target.ca_file).open(request, timeout=REQUEST_TIMEOUT_S):
            return Claimed.YES
    except urllib.error.HTTPError as error:
        with error:
            if error.code in (409, 412):
                return Claimed.BEFORE
            raise Unreachable(f"the object store answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise Unreachable(f"the object store at {request.host} can't be reached: {error.reason}") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Unreachable(f"the object store at {request.host} can't be reached: {type(error).__name__}") from error


def _opener(ca_file: str | None) -> urllib.request.OpenerDirector:
    context = ssl.create_default_context(cafile=ca_file)
    return urllib.request.build_opener(urllib.request.HTTPSHandler(context=context))
