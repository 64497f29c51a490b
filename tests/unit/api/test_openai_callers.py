"""Whose token it is that a client of the OpenAI API shows."""

import pytest

from starforge.api.playgrounds.openai.app import _credentials


@pytest.mark.parametrize(
    ("sent", "shown"),
    [(b"Bearer abc", "Bearer abc"), (b"Bearer ", None), (b"Bearer", None), (b"", None), (b"Basic x", "Basic x")],
)
def test_an_empty_key_is_none(sent: bytes, shown: str | None) -> None:
    scope = {"type": "http", "headers": [(b"authorization", sent)], "client": ("127.0.0.1", 1)}
    found = _credentials(scope)
    assert (found.authorization, found.client_host) == (shown, "127.0.0.1")


def test_no_key() -> None:
    assert _credentials({"type": "http", "headers": [], "client": None}).authorization is None
