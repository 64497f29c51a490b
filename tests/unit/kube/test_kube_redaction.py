"""Signed URLs never get past the place where they enter."""

import pytest

from starforge.domain.redaction import redact, redact_bytes, redact_or_none

URL = "https://s3:9443/starforge/capsules/ab.zip"
QUERY = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=key%2F20261129&X-Amz-Signature=deadbeef"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"403 for url: {URL}?{QUERY}", f"403 for url: {URL}?<removed>"),
        (f"'{URL}?{QUERY}' and '{URL}?{QUERY}'.", f"'{URL}?<removed>' and '{URL}?<removed>'."),
        (f'{{"working_dir": "{URL}?{QUERY}"}}', f'{{"working_dir": "{URL}?<removed>"}}'),
        ("/ab.zip?x-amz-signature=dead", "/ab.zip?<removed>"),
        (f"{URL}?AWSAccessKeyId=k&Signature=abc%3D&Expires=1", f"{URL}?<removed>"),
        ("X-Amz-Credential=key/2026 X-Amz-Signature=dead", "X-Amz-Credential=<removed> X-Amz-Signature=<removed>"),
        ("postgres://me:secret@db/x", "postgres://me:<removed>@db/x"),
        ("is it there? yes, at https://h/p?page=2", "is it there? yes, at https://h/p?page=2"),
        ("", ""),
    ],
)
def test_secrets_go_and_the_rest_stays(text: str, expected: str) -> None:
    assert redact(text) == expected


def test_lines_of_logs_keep_every_byte_that_is_no_secret() -> None:
    assert redact_bytes(b"\xff\x00 \xc3\xbc /a.zip?X-Amz-Signature=dead") == b"\xff\x00 \xc3\xbc /a.zip?<removed>"
    assert redact_bytes(bytes(range(256))) == bytes(range(256))


def test_redacting_twice_changes_nothing() -> None:
    once = redact(f"{URL}?{QUERY}")
    assert redact(once) == once


def test_a_hostile_text_costs_no_more_than_its_length() -> None:
    text = "?" * 200_000 + "://" * 50_000
    assert redact(text) == text


def test_the_cut_comes_after_the_redaction() -> None:
    assert redact_or_none(f"a?{QUERY}", 5) == "a?<re"
    assert redact_or_none(None) is None
    assert redact_or_none("") is None
