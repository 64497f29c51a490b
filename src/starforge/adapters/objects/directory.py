"""Objects as files of a directory, for one machine. Written aside, then linked or renamed: never half there."""

import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from starforge.adapters.objects.keys import CHECK_KEY, check_key, is_key
from starforge.adapters.objects.links import LinkSigner
from starforge.domain.errors import NotFound, ObjectStoreUnavailable
from starforge.domain.ports import Audience, Signed

_TEN_YEARS_S = 3650 * 86400.0
_BLOCK = 1 << 20


def _utc_now() -> datetime:
    return datetime.now(UTC)


class DirectoryObjects:
    """An ObjectStore (see the port) below `root`.

    Pods, which are processes of this machine, get `file` URLs: the claim's is the path to be made with O_EXCL. Clients
    get links below `base_url`, which the gateway serves after `verify` said yes.
    """

    def __init__(self, root: Path, base_url: str, *, now: Callable[[], datetime] = _utc_now) -> None:
        self._root = root.absolute()
        self._drafts = self._root / ".drafts"
        self._base_url = base_url
        self._now = now
        self._signer = LinkSigner(self._root / ".signing-key")

    @property
    def longest_signature_s(self) -> float:
        return _TEN_YEARS_S

    def prepare(self) -> None:
        with self._outside():
            self._drafts.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._signer.key()

    def path(self, key: str) -> Path:
        """Where the file of an object is, or would be."""
        return self._root / check_key(key)

    def check(self) -> None:
        body = b"ok"
        self.put(CHECK_KEY, body)
        if self.read(CHECK_KEY) != body:
            raise ObjectStoreUnavailable(f"The directory {self._root} gave back other bytes than it got.")

    def put(self, key: str, source: Path | bytes, *, only_new: bool = False) -> bool:
        target = self.path(key)
        with self._outside(), self._draft(source) as draft:
            target.parent.mkdir(parents=True, exist_ok=True)
            if not only_new:
                draft.replace(target)
                return True
            try:
                os.link(draft, target)
            except FileExistsError:
                return False
            return True

    def size(self, key: str) -> int | None:
        path = self.path(key)
        with self._outside():
            return path.stat().st_size if path.is_file() else None

    def read(self, key: str, *, start: int = 0, length: int | None = None) -> bytes:
        with self._outside(), self._open(key) as file:
            file.seek(start)
            return file.read(-1 if length is None else length)

    def fetch(self, key: str, into: Path) -> None:
        with self._outside(), self._open(key) as file, into.open("wb") as copy:
            shutil.copyfileobj(file, copy, _BLOCK)

    def delete(self, key: str) -> None:
        with self._outside():
            self.path(key).unlink(missing_ok=True)

    def sign_get(self, key: str, *, seconds: float, audience: Audience) -> Signed:
        return self._sign("GET", key, seconds, audience, only_new=False)

    def sign_put(self, key: str, *, seconds: float, audience: Audience, only_new: bool) -> Signed:
        with self._outside():
            self.path(key).parent.mkdir(parents=True, exist_ok=True)
        return self._sign("PUT", key, seconds, audience, only_new=only_new)

    def verify(self, key: str, method: str, query: Mapping[str, str]) -> bool:
        """Whether a request that a client made under a link of ours may be served right now."""
        with self._outside():
            return is_key(key) and self._signer.verify(key, method, query, now=self._now().timestamp())

    @staticmethod
    def must_be_new(query: Mapping[str, str]) -> bool:
        """Whether a verified PUT is to be answered 412 when the key is taken."""
        return query.get("only_new") == "1"

    def _sign(self, method: str, key: str, seconds: float, audience: Audience, *, only_new: bool) -> Signed:
        path = self.path(key)
        until = self._now() + timedelta(seconds=min(seconds, self.longest_signature_s))
        headers = (("If-None-Match", "*"),) if only_new else ()
        if audience is Audience.POD:
            return Signed(method, path.as_uri(), headers, until)
        expires = int(until.timestamp())
        with self._outside():
            url = self._signer.link(self._base_url, key, method=method, expires=expires, only_new=only_new)
        return Signed(method, url, headers, datetime.fromtimestamp(expires, UTC))

    def _open(self, key: str) -> BinaryIO:
        try:
            return self.path(key).open("rb")
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise NotFound(f"There is no object {key}.") from None

    @contextmanager
    def _draft(self, source: Path | bytes) -> Iterator[Path]:
        """A complete copy of `source` on disk, under a name that nobody looks at."""
        self._drafts.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = self._drafts / secrets.token_hex(16)
        try:
            with draft.open("xb") as file:
                if isinstance(source, bytes):
                    file.write(source)
                else:
                    with source.open("rb") as original:
                        shutil.copyfileobj(original, file, _BLOCK)
                file.flush()
                os.fsync(file.fileno())
            yield draft
        finally:
            draft.unlink(missing_ok=True)

    @contextmanager
    def _outside(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            message = f"The object directory {self._root} can't be used: {error.strerror} ({error.filename})."
            raise ObjectStoreUnavailable(message) from error


__all__ = ["DirectoryObjects"]
