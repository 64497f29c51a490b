"""Removes signed URLs and tokens from text that came from outside: whoever has one may do what it is good for."""

import re

REMOVED = "<removed>"
_QUERY = re.compile(r"\?[^\s\"'<>?]+")
_SECRET = re.compile(r"x-amz-|x-goog-|signature=|awsaccesskeyid|[?&]sig=", re.IGNORECASE)
_LOOSE = re.compile(
    r"((?:x-(?:amz|goog)-(?:signature|credential|security-token))(?:=|%3d))[^\s\"'<>&\\]+", re.IGNORECASE
)
_TOKEN = re.compile(r"(sf_[0-9a-f]{16}_)[0-9a-f]{64}")
_PASSWORD = re.compile(r"(://[^\s/:@]{1,256}):[^\s/@]{1,1024}@")


def redact(text: str) -> str:
    """`text` without the query string of any signed URL, loose signatures, passwords in URLs, and tokens of ours."""
    text = _QUERY.sub(_query, text)
    text = _LOOSE.sub(rf"\1{REMOVED}", text)
    text = _TOKEN.sub(rf"\1{REMOVED}", text)
    return _PASSWORD.sub(rf"\1:{REMOVED}@", text)


def redact_bytes(data: bytes) -> bytes:
    """The same for a line of a log, whatever its encoding."""
    return redact(data.decode("latin-1")).encode("latin-1")


def redact_or_none(text: str | None, limit: int | None = None) -> str | None:
    """The same for text that may be missing or empty; at most `limit` characters of it."""
    return redact(text)[:limit] if text else None


def _query(match: re.Match[str]) -> str:
    return f"?{REMOVED}" if _SECRET.search(match[0]) else match[0]
