"""Where words and JSON go: answers to stdout, everything else to stderr."""

import json
import sys

from rich.console import Console

PIPE_WIDTH = 200
"""Columns where there is no terminal, so that a table in a pipe is not cut."""


def out_console() -> Console:
    return _console(is_terminal=sys.stdout.isatty(), stderr=False)


def err_console() -> Console:
    return _console(is_terminal=sys.stderr.isatty(), stderr=True)


def _console(*, is_terminal: bool, stderr: bool) -> Console:
    width = None if is_terminal else PIPE_WIDTH
    return Console(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


def print_json(value: object, *, indent: int | None = 2) -> None:
    sys.stdout.write(f"{json.dumps(value, ensure_ascii=False, indent=indent)}\n")
    sys.stdout.flush()
