"""Builds the Capsule of a job and stores it, once for equal code and spec."""

from dataclasses import replace
from pathlib import Path

from starforge.domain.actions.apply import apply, command, load
from starforge.domain.capsule import PackedCapsule, PackedCode, capsule_key, code_key
from starforge.domain.changes import CapsuleRecord, Changes, CodeRecord, Lease, Upload
from starforge.domain.errors import CodeRefused, NotFound, Problem
from starforge.domain.job import Job, JobOutcome, JobState, finish, move
from starforge.domain.jobspec import jobspec
from starforge.domain.logs import checksum
from starforge.domain.ports import Ports
from starforge.domain.reason import ReasonCode, reason
from starforge.domain.telling import write
from starforge.domain.timeline import CommandKind


def package(ports: Ports, lease: Lease) -> None:
    """PACKAGE: from SUBMITTED over PACKAGING to LAUNCHING; CAPSULE_INVALID if the code can't be taken."""
    job = load(ports, lease.command.run.job)
    if job.state is JobState.SUBMITTED and job.run == lease.command.run:
        job = _begin(ports, job)
    if job.state is not JobState.PACKAGING or job.run != lease.command.run:
        return apply(ports, Changes(done=True), lease)
    kept = _kept_capsule(ports, job)
    if kept:
        return _finish(ports, job, kept, lease)
    try:
        with ports.scratch() as scratch:
            code = _code(ports, job, scratch)
            record = _stored_capsule(ports, job, code, scratch)
    except CodeRefused as refused:
        return _refuse(ports, job, refused, lease)
    _finish(ports, job, record, lease)


def _begin(ports: Ports, job: Job) -> Job:
    at = ports.now()
    changes = Changes()
    write(changes, job, move(job, JobState.PACKAGING, at), at, ports.random)
    apply(ports, changes)
    return load(ports, job.id)


def _kept_capsule(ports: Ports, job: Job) -> CapsuleRecord | None:
    """The Capsule of an earlier attempt, if it is there still: the next one runs the very same."""
    record = ports.store.capsules([job.capsule]).get(job.capsule) if job.capsule else None
    return record if record and ports.objects.size(capsule_key(record.digest)) == record.bytes else None


def _code(ports: Ports, job: Job, scratch: Path) -> PackedCode:
    inline = ports.store.inline_code(job.id)
    if inline is not None:
        code = ports.packer.pack_files(inline, scratch)
    else:
        code = ports.packer.open_code(_fetched(ports, job, scratch))
        _same_digest(job, code)
    ports.objects.put(code_key(code.digest), code.archive, only_new=True)
    apply(ports, Changes(code=[CodeRecord(code.digest, len(code.files), code.bytes, code.transport_sha256)]))
    announced = ports.store.upload(code.digest)
    if announced:
        ports.objects.delete(upload_key(announced.transport_sha256))
    return code


def _fetched(ports: Ports, job: Job, scratch: Path) -> Path:
    archive = scratch / "code.zip"
    if job.code is None:
        raise CodeRefused([Problem("CODE_NOT_FOUND", ("code",), "The job has no code; submit it again.")])
    announced = ports.store.upload(job.code)
    if announced and _not_as_announced(ports, announced):
        ports.objects.delete(upload_key(announced.transport_sha256))
        message = f"What was sent of code {job.code} is not the {announced.bytes} bytes announced; send it again."
        raise CodeRefused([Problem("INVALID", ("code", "digest"), message)])
    sent = [upload_key(announced.transport_sha256)] if announced else []
    # Twice under its own key: between two looks, another job may have verified it and removed what was sent.
    for key in (code_key(job.code), *sent, code_key(job.code)):
        if _was_fetched(ports, key, archive):
            return archive
    message = f"Code {job.code} was announced but never sent; send it and submit the job again."
    raise CodeRefused([Problem("CODE_NOT_FOUND", ("code",), message)])


def _not_as_announced(ports: Ports, announced: Upload) -> bool:
    """Whether what was sent has another size than was said, so that it is not even fetched."""
    size = ports.objects.size(upload_key(announced.transport_sha256))
    return size is not None and size != announced.bytes


def _was_fetched(ports: Ports, key: str, into: Path) -> bool:
    try:
        ports.objects.fetch(key, into)
    except NotFound:
        return False
    return True


def _same_digest(job: Job, code: PackedCode) -> None:
    if code.digest != job.code:
        message = f"The code that was sent has digest {code.digest}, not {job.code} as announced; send it again."
        raise CodeRefused([Problem("INVALID", ("code", "digest"), message, rule="digest")])


def upload_key(transport_sha256: str) -> str:
    """Where code is sent before it is verified."""
    return f"uploads/{transport_sha256}.zip"


def _stored_capsule(ports: Ports, job: Job, code: PackedCode, scratch: Path) -> CapsuleRecord:
    capsule = ports.packer.build_capsule(code, jobspec(job.spec), scratch)
    known = ports.store.capsules([capsule.digest]).get(capsule.digest)
    if known and ports.objects.size(capsule_key(capsule.digest)) == known.bytes:
        return known
    if ports.objects.put(capsule_key(capsule.digest), capsule.archive, only_new=True):
        return _record(ports, code, capsule, capsule.bytes, capsule.transport_sha256)
    # Equal content may have been zipped by another zlib: what counts is the object that is there.
    stored = scratch / "stored.zip"
    ports.objects.fetch(capsule_key(capsule.digest), stored)
    return _record(ports, code, capsule, stored.stat().st_size, _sha256(stored))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return checksum(iter(lambda: file.read(1 << 20), b""))


def _record(ports: Ports, code: PackedCode, capsule: PackedCapsule, size: int, sha256: str) -> CapsuleRecord:
    return CapsuleRecord(
        capsule.digest, code.digest, len(capsule.files), size, sha256, capsule.runner_digest, ports.now()
    )


def _finish(ports: Ports, job: Job, record: CapsuleRecord, lease: Lease) -> None:
    at = ports.now()
    changes = Changes(done=True)
    changes.capsules.append(record)
    changes.drop_inline.append(job.id)
    after = replace(move(job, JobState.LAUNCHING, at), code=record.code, capsule=record.digest)
    write(changes, job, after, at, ports.random)
    changes.commands.append(command(ports, CommandKind.LAUNCH, job))
    apply(ports, changes, lease)


def _refuse(ports: Ports, job: Job, refused: CodeRefused, lease: Lease) -> None:
    at = ports.now()
    why = reason(ReasonCode.CAPSULE_INVALID, refused.message, at, advice="Correct the code and submit it again.")
    changes = Changes(done=True, drop_inline=[job.id])
    write(changes, job, finish(job, JobOutcome.FAILED, why, at), at, ports.random)
    changes.commands.append(command(ports, CommandKind.ARCHIVE, job))
    apply(ports, changes, lease)
