"""prepareCode: says whether code is here already, or where to send it."""

import re
from dataclasses import dataclass

from starforge.domain.actions.apply import apply
from starforge.domain.actions.package import upload_key
from starforge.domain.capsule import CODE_LIMITS, code_key, size_problems
from starforge.domain.changes import Changes, Upload
from starforge.domain.errors import CodeRefused, Problem
from starforge.domain.names import Digest
from starforge.domain.ports import Audience, Ports, Signed

UPLOAD_S = 3600.0
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Announced:
    """Code that a caller is about to use: digest of its manifest, sha256 and bytes of its zip, number of files."""

    digest: Digest
    transport_sha256: str
    bytes: int
    files: int


def prepare_code(ports: Ports, code: Announced) -> Signed | None:
    """Where to PUT the zip, or None if it is here; CodeRefused if it is too large. Safe to repeat."""
    problems = [*_digests(code), *size_problems(count=code.files, size=code.bytes, limits=CODE_LIMITS)]
    if problems:
        raise CodeRefused(problems)
    if ports.store.code(code.digest) and ports.objects.size(code_key(code.digest)) is not None:
        return None
    key = upload_key(code.transport_sha256)
    announced = Upload(code.digest, code.transport_sha256, code.bytes, code.files, ports.now())
    apply(ports, Changes(uploads=[announced]))
    return ports.objects.sign_put(key, seconds=UPLOAD_S, audience=Audience.CLIENT, only_new=False)


def _digests(code: Announced) -> list[Problem]:
    given = (("digest", code.digest), ("transportSha256", code.transport_sha256))
    message = "{} must be a sha256 in 64 lower-case hexadecimal digits."
    return [Problem("INVALID", (name,), message.format(name)) for name, text in given if not _SHA256.fullmatch(text)]
