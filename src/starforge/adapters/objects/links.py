"""Links to objects that a gateway serves: signed by HMAC-SHA256 with a key that lies beside the objects."""

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlencode

_KEY_BYTES = 32
_EXPIRES_MAX_DIGITS = 12


class LinkSigner:
    """Signs and checks the query of links. A link is good for one method on one key until it expires."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file
        self._key: bytes | None = None

    def link(self, base_url: str, key: str, *, method: str, expires: int, only_new: bool) -> str:
        """`<base url>/objects/<key>?expires=<epoch seconds>&only_new=<0 or 1>&signature=<hex>`."""
        query = {"expires": str(expires), "only_new": "1" if only_new else "0"}
        query["signature"] = self._signature(method, key, query)
        return f"{base_url.rstrip('/')}/objects/{quote(key)}?{urlencode(query)}"

    def verify(self, key: str, method: str, query: Mapping[str, str], *, now: float) -> bool:
        """Whether `query` was signed for this method (HEAD counts as GET) and key, and has not expired."""
        expires = query.get("expires", "")
        if not (expires.isascii() and expires.isdigit() and len(expires) <= _EXPIRES_MAX_DIGITS) or int(expires) <= now:
            return False
        wanted = self._signature("GET" if method == "HEAD" else method, key, query)
        return hmac.compare_digest(wanted.encode(), query.get("signature", "").encode("utf-8", "replace"))

    def _signature(self, method: str, key: str, query: Mapping[str, str]) -> str:
        text = "\n".join((method, key, query["expires"], query.get("only_new", "0")))
        return hmac.new(self.key(), text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()

    def key(self) -> bytes:
        """The key, made at the first use; every process that shares the directory gets the same one."""
        if self._key is None:
            if not self._key_file.exists():
                _make_key(self._key_file)
            self._key = self._key_file.read_bytes()
        return self._key


def _make_key(path: Path) -> None:
    """Write a new key whole or not at all; the first of several processes wins."""
    draft = path.with_name(f"{path.name}-{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_bytes(_KEY_BYTES))
        try:
            os.link(draft, path)
        except FileExistsError:
            return
    finally:
        draft.unlink()


__all__ = ["LinkSigner"]
