"""Runs in an init container of every Ray Pod, with the image's own Python and nothing else.

Fetches CAPSULE_URL into CAPSULE_FILE, which only appears whole and with CAPSULE_SHA256. It tries for about a minute.
Its last line says why it could not be had, and so does the exit code: one of the runner's own, or 1 if the store said
no. The URL is a secret and never printed.
"""

# The image's Python may be old, so nothing here is newer than 3.6.
# ruff: noqa: PTH105, PTH123, S310, T201, UP031

import hashlib
import os
import sys
import time
import urllib.error
import urllib.request
from http.client import HTTPException

TRIES = 8
LONGEST_WAIT_S = 15
SILENCE_S = 30
UNREACHED, CORRUPT = 114, 115
FINAL = {400, 401, 403, 404, 410}


class Unusable(Exception):
    """It will not get better by asking again."""


class Corrupt(Exception):
    """Other bytes came than were stored."""


def download(url: str, part: str) -> str:
    digest = hashlib.sha256()
    try:
        with urllib.request.urlopen(url, timeout=SILENCE_S) as answer, open(part, "wb") as out:
            for block in iter(lambda: answer.read(1 << 20), b""):
                digest.update(block)
                out.write(block)
    except urllib.error.HTTPError as error:
        if error.code in FINAL:
            raise Unusable("the object store answered %d" % error.code) from None
        raise
    return digest.hexdigest()


def fetch(url: str, target: str, sha256: str) -> None:
    part = "%s.%d.part" % (target, os.getpid())
    found = download(url, part)
    if found != sha256:
        raise Corrupt("its sha256 is %s and not %s" % (found, sha256))
    os.replace(part, target)


def main() -> int:
    url, target = os.environ["CAPSULE_URL"], os.environ["CAPSULE_FILE"]
    code, why = UNREACHED, ""
    for count in range(1, TRIES + 1):
        try:
            fetch(url, target, os.environ["CAPSULE_SHA256"])
            return 0
        except Unusable as error:
            print("The capsule can't be fetched: %s." % error, file=sys.stderr)
            return 1
        except (OSError, ValueError, EOFError, HTTPException, Corrupt) as error:
            code, why = CORRUPT if isinstance(error, Corrupt) else UNREACHED, str(error).replace(url, "<url>")
            print("Try %d of %d to fetch the capsule: %s" % (count, TRIES, why), file=sys.stderr, flush=True)
        if count < TRIES:
            time.sleep(min(2 ** (count - 1), LONGEST_WAIT_S))
    print("The capsule can't be fetched: %s." % why, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
