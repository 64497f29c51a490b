"""What no answer may be, whatever was asked."""

import gc
import json
import logging
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hypothesis import HealthCheck, Phase, settings

from starforge.api.transport.codes import ErrorCode

EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES") or 0)
"""Of each test; 0 for the few that every run makes, which are always the same."""
TELLTALES = (
    "Traceback", "/src/", "site-packages", 'File "', "object at 0x", "sqlalchemy", "psycopg", "sqlite3",
    "TypeError", "ValueError", "KeyError", "AttributeError", "IndexError", "RuntimeError", "OverflowError",
    "RecursionError", "UnicodeEncodeError", "UnicodeDecodeError", "AssertionError", "OSError", "NotImplementedError",
)  # fmt: skip
"""What only an exception, or where it was raised, can have brought into an answer: nothing that is asked has them."""
SERVER_STATUSES = {503: ErrorCode.UNAVAILABLE, 504: ErrorCode.TIMEOUT}


def budget(examples: int) -> settings:
    """`examples` that are always the same, or FUZZ_EXAMPLES of new ones."""
    return settings(
        max_examples=EXAMPLES or examples,
        derandomize=not EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.explicit, Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )


def judge_text(text: str) -> None:
    found = [word for word in TELLTALES if word in text]
    assert not found, f"{found} in {text[:2000]}"


def judge_errors(errors: Any) -> None:
    assert isinstance(errors, list), errors
    assert errors
    for error in errors:
        assert isinstance(error["message"], str), error
        extensions = error["extensions"]
        assert extensions["code"] in ErrorCode.__members__, error
        assert extensions["code"] != "INTERNAL_SERVER_ERROR", error
        assert isinstance(extensions["id"], str), error
        assert extensions["id"], error
        assert isinstance(extensions["retryable"], bool), error


def judge_payload(payload: Any) -> None:
    """Of a whole GraphQL response."""
    assert isinstance(payload, dict), payload
    assert payload.keys() <= {"data", "errors", "extensions"}, payload.keys()
    assert "data" in payload or "errors" in payload, payload
    if "errors" in payload:
        judge_errors(payload["errors"])


def judge_status(status: int, payload: Any) -> None:
    assert status != 500, payload
    if status >= 500:
        assert payload["errors"][0]["extensions"]["code"] == SERVER_STATUSES[status], (status, payload)


def strictly(text: str | bytes) -> Any:
    """JSON as the RFC has it: no NaN, no Infinity."""

    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} in an answer")

    return json.loads(text, parse_constant=refuse)


class Complaints(logging.Handler):
    """Everything that was logged as an error, with its traceback, since it was last looked at."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self._texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._texts.append(self.format(record))

    def taken(self) -> list[str]:
        taken, self._texts = self._texts, []
        return taken

    @contextmanager
    def none(self, what: Any) -> Iterator[None]:
        """Whatever goes wrong in this block is told with what was logged, and with `what` was sent."""
        self.taken()
        try:
            yield
        except AssertionError as wrong:
            raise AssertionError("\n".join([str(wrong), *self.taken(), f"sent: {what!r}"])) from wrong
        logged = self.taken()
        assert not logged, "\n".join([*logged, f"sent: {what!r}"])


@contextmanager
def complaints() -> Iterator[Complaints]:
    """Of the whole process, down to exceptions that nobody ever asked for."""
    handler = Complaints()
    logging.getLogger().addHandler(handler)
    try:
        yield handler
        gc.collect()
    finally:
        logging.getLogger().removeHandler(handler)
    left = handler.taken()
    assert not left, "\n".join(left)


class Tally(Counter[str]):
    """How the answers were, to see that a run reached what it should."""

    def show(self) -> None:
        print(dict(self))  # noqa: T201

    def payload(self, payload: Any) -> None:
        codes = {error["extensions"]["code"] for error in payload.get("errors", ())}
        self["answered" if "data" in payload and not codes else ",".join(sorted(codes))] += 1
