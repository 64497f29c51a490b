"""Exit codes, and how an error becomes one and a sentence."""

import sys
from enum import IntEnum

from starforge.cli.words import clean
from starforge.domain.errors import NotFound, StarForgeError, UserMistake


class ExitCode(IntEnum):
    """What scripts can rely on."""

    SUCCEEDED = 0
    FAILED = 1
    REFUSED = 2
    CANCELED = 3
    UNREACHABLE = 4
    NOT_FOUND = 5
    INTERRUPTED = 130


EPILOG = (
    "Exit codes: 0 done, and of a job that is followed SUCCEEDED; 1 the job FAILED, or does not fit now; 2 wrong "
    "usage, refused, or it never fits; 3 the job was CANCELED; 4 the gateway can't be reached, wants another token or "
    "is broken; 5 there is no such job, log or fleet; 130 interrupted. Settings: FORGE_URL (http://127.0.0.1:8000), "
    "FORGE_TOKEN."
)

OUTCOMES = {
    "SUCCEEDED": ExitCode.SUCCEEDED,
    "FAILED": ExitCode.FAILED,
    "CANCELED": ExitCode.CANCELED,
}
"""Of a job that was followed to its end, by its state."""


def exit_code(error: StarForgeError) -> ExitCode:
    if isinstance(error, UserMistake):
        return ExitCode.REFUSED
    return ExitCode.NOT_FOUND if isinstance(error, NotFound) else ExitCode.UNREACHABLE


def tell(error: StarForgeError) -> None:
    """The error as sentences for a person, on stderr."""
    sentences = [problem.message for problem in error.problems] if isinstance(error, UserMistake) else [error.message]
    for sentence in sentences:
        sys.stderr.write(f"{clean(sentence)}\n")
