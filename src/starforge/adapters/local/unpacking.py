"""Fetches the Capsule, checks it and unpacks it, as an init container does on a cluster."""

import hashlib
import http.client
import shutil
import ssl
import stat
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit
from urllib.response import addinfourl

from starforge.domain.errors import ObjectStoreUnavailable

TIMEOUT_S = 60.0
_BLOCK = 1 << 20
_TOP = "capsule"
_LATER = frozenset({408, 425, 429})
"""Answers, besides those of 500 and more, after which it is worth asking again."""


class CapsuleUnusable(Exception):
    """The Capsule can't be had or is not what was packed; `str()` is a sentence without any signed URL."""


def fetch(
    url: str, headers: dict[str, str], into: Path, *, sha256: str, ca_file: str | None, check: Callable[[], None]
) -> None:
    """Copies the Capsule into a file. `check` is called between blocks and may raise to give up.

    ObjectStoreUnavailable if it is worth asking again, CapsuleUnusable if it is not.
    """
    digest = hashlib.sha256()
    with _asked(url, headers, ca_file) as source, into.open("wb") as file:
        for block in _blocks(url, source):
            check()
            digest.update(block)
            file.write(block)
    if digest.hexdigest() != sha256:
        raise CapsuleUnusable("The Capsule that came from the object store has another checksum than the one packed.")


@contextmanager
def _asked(url: str, headers: dict[str, str], ca_file: str | None) -> Iterator[addinfourl]:
    context = ssl.create_default_context(cafile=ca_file) if url.startswith("https:") else None
    # https, http and file are what the port may name; the URL comes from our own object store.
    request = urllib.request.Request(url, headers=headers)  # noqa: S310
    try:
        source = urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context)  # noqa: S310
    except urllib.error.HTTPError as error:
        error.close()
        message = f"The object store answered {error.code} when the Capsule was fetched."
        later = error.code >= 500 or error.code in _LATER
        raise (ObjectStoreUnavailable(message) if later else CapsuleUnusable(message)) from None
    except (OSError, http.client.HTTPException) as error:
        raise _not_had(url, error) from None
    with source:
        yield source


def _blocks(url: str, source: addinfourl) -> Iterator[bytes]:
    missing = int(source.headers.get("Content-Length") or 0)
    try:
        while block := source.read(_BLOCK):
            missing -= len(block)
            yield block
    except (OSError, http.client.HTTPException) as error:
        raise _not_had(url, error) from None
    if missing > 0:
        raise ObjectStoreUnavailable(f"The object store sent {missing} bytes less of the Capsule than it said.")


def _not_had(url: str, error: Exception) -> Exception:
    """What to raise when nothing was answered; a file that lacks in a directory that is there will not come."""
    cause = getattr(error, "reason", error)
    message = f"The Capsule can't be fetched from the object store: {_why(cause)}."
    parts = urlsplit(url)
    gone = parts.scheme == "file" and isinstance(cause, FileNotFoundError)
    if gone and Path(urllib.request.url2pathname(parts.path)).parent.is_dir():
        return CapsuleUnusable(message)
    return ObjectStoreUnavailable(message)


def _why(cause: object) -> str:
    """Without the text of the error, as the URL may be in it."""
    return (cause.strerror if isinstance(cause, OSError) else None) or type(cause).__name__


def unpack(archive: Path, into: Path, *, check: Callable[[], None]) -> None:
    """Unpacks what is below `capsule/` into the new directory `into`; nothing is ever written elsewhere."""
    into.mkdir(mode=0o700)
    try:
        with zipfile.ZipFile(archive) as source:
            for member in source.infolist():
                check()
                if not member.is_dir():
                    _write(source, member, into)
    except zipfile.BadZipFile as error:
        raise CapsuleUnusable(f"The Capsule is no readable zip: {error}.") from None


def _write(source: zipfile.ZipFile, member: zipfile.ZipInfo, into: Path) -> None:
    target = into.joinpath(*_inner(member))
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open(member) as content, target.open("xb") as file:
        shutil.copyfileobj(content, file, _BLOCK)
    mode = member.external_attr >> 16
    target.chmod(0o755 if mode & stat.S_IXUSR else 0o644)


def _inner(member: zipfile.ZipInfo) -> tuple[str, ...]:
    path = PurePosixPath(member.filename)
    kind = stat.S_IFMT(member.external_attr >> 16)
    inner = path.parts[1:]
    if path.is_absolute() or path.parts[0] != _TOP or not inner or ".." in inner or kind not in (0, stat.S_IFREG):
        raise CapsuleUnusable(f"The Capsule holds {member.filename!r}, which is no regular file below {_TOP}/.")
    return inner
