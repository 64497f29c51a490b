"""Packs a directory, sends its code if the gateway has it not yet, and submits the job."""

import tempfile
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import httpx
from rich.console import Console

from starforge.adapters.packing.packer import CapsulePacker
from starforge.cli.answers import Json
from starforge.cli.documents import PREPARE_CODE, SUBMIT_JOB
from starforge.cli.gateway import Gateway, http_client
from starforge.cli.specfile import SpecFile, read_spec
from starforge.cli.waiting import Meter, patiently
from starforge.cli.words import size
from starforge.domain.capsule import PackedCode
from starforge.domain.errors import Outside, Problem, SpecRefused

TRIES = 3
UPLOAD_TIMEOUT = httpx.Timeout(120, connect=10)
_CHUNK_BYTES = 256 * 1024
Result = TypeVar("Result")


@dataclass(frozen=True)
class Submitted:
    """`status` is CREATED or REPLAYED; `sent_bytes` is 0 when the code was there already."""

    status: str
    job: Json
    code: PackedCode
    sent_bytes: int


class SubmitRefused(SpecRefused):
    """The gateway does not take it; `file` has the lines of its problems' fields."""

    def __init__(self, errors: Sequence[Json], file: SpecFile) -> None:
        super().__init__([_problem(error) for error in errors])
        self.file = file


def _problem(error: Json) -> Problem:
    return Problem(error["code"], _field(error), error["message"], file=error.get("path"), rule=error.get("rule"))


def _field(error: Json) -> tuple[str, ...]:
    """The path of a user error from the spec on: `input.spec.pools.0` as ("pools", "0")."""
    path = list(error["field"] or ())
    for step in ("input", "spec"):
        path = path[1:] if path[:1] == [step] else path
    return tuple(path)


def submit(
    gateway: Gateway,
    directory: Path,
    *,
    console: Console,
    idempotency_key: str | None = None,
    allow_unsatisfiable: bool = False,
) -> Submitted:
    """The job of the directory. SpecRefused or CodeRefused if it can't be one; `console` is for progress."""
    file = read_spec(directory)
    with tempfile.TemporaryDirectory(prefix="starforge-", ignore_cleanup_errors=True) as scratch:
        packer = CapsulePacker(Path(scratch))
        code = patiently(console, "Packing", lambda: packer.pack_directory(directory, Path(scratch)))
        sent = again(lambda: send_code(gateway, code, file, console))
    given = {
        "spec": file.spec,
        "code": {"digest": code.digest},
        "idempotencyKey": idempotency_key or str(uuid.uuid4()),
        **allowing(allow_unsatisfiable),
    }
    answer = again(lambda: gateway.ask(SUBMIT_JOB, input=given))["submitJob"]
    _refuse(answer, file)
    return Submitted(answer["status"], answer["job"], code, sent)


def allowing(unsatisfiable: bool) -> Json:
    """What a submission says besides, so that it is taken though no fleet could place it today."""
    return {"allowUnsatisfiable": True} if unsatisfiable else {}


def again(call: Callable[[], Result]) -> Result:
    """What the call returns; it is safe to repeat, and is when the connection was cut or an answer was late."""
    for _ in range(TRIES - 1):
        try:
            return call()
        except Outside as error:
            if isinstance(error.__cause__, httpx.ConnectError):
                raise
    return call()


def _refuse(answer: Json, file: SpecFile) -> None:
    if answer["userErrors"]:
        raise SubmitRefused(answer["userErrors"], file)


def send_code(gateway: Gateway, code: PackedCode, file: SpecFile, console: Console) -> int:
    """Announces the code and sends it if it is not there yet; returns the bytes that had to be sent."""
    given = {
        "digest": code.digest,
        "transportSha256": code.transport_sha256,
        "bytes": code.bytes,
        "files": len(code.files),
    }
    answer = gateway.ask(PREPARE_CODE, input=given)["prepareCode"]
    _refuse(answer, file)
    if answer["upload"] is None:
        return 0
    meter = Meter(code.bytes)
    work = lambda: _put(answer["upload"], code, meter, trust_env=not gateway.is_local)  # noqa: E731
    patiently(console, "Uploading", work, meter)
    return code.bytes


def _put(upload: Json, code: PackedCode, meter: Meter, *, trust_env: bool) -> None:
    headers = {header["name"]: header["value"] for header in upload["headers"]} | {"content-length": str(code.bytes)}
    try:
        with http_client(trust_env=trust_env) as http:
            content = _chunks(code.archive, meter)
            response = http.request(
                upload["method"], upload["url"], content=content, headers=headers, timeout=UPLOAD_TIMEOUT
            )
    except httpx.HTTPError as error:
        # Without the address, whose signature is a secret.
        raise Outside(f"The code ({size(code.bytes)}) could not be sent: {type(error).__name__}. Try again.") from None
    if not response.is_success:
        raise Outside(f"The object store refused the code ({size(code.bytes)}) with status {response.status_code}.")


def _chunks(archive: Path, meter: Meter) -> Iterator[bytes]:
    meter.done = 0
    with archive.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk
            meter.add(len(chunk))
