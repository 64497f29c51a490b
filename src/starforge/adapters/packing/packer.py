"""CapsulePacker: the `Packer` port, on this machine's disk."""

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, cast

from starforge.adapters.packing.archive import (
    CHUNK_BYTES,
    SourceFile,
    file_sha256,
    pack_files,
    read_chunks,
)
from starforge.adapters.packing.capsule_zip import CapsulePart, write_capsule
from starforge.adapters.packing.intake import verify_code
from starforge.adapters.packing.runner_pex import runner_pex, starforge_module
from starforge.adapters.packing.walk import walk_code
from starforge.domain.capsule import (
    CODE_LIMITS,
    CODE_TOP,
    INLINE_LIMITS,
    JOBSPEC_PATH,
    MANIFEST_PATH,
    RUNNER_PATH,
    STARFORGE_MODULE,
    CapsuleFile,
    CodeLimits,
    InlineFile,
    PackedCapsule,
    PackedCode,
    code_problems,
    files_digest,
    manifest_bytes,
)
from starforge.domain.errors import CodeRefused, Defect
from starforge.domain.names import Digest


class CapsulePacker:
    """`cache` keeps the runner once it is built. Refusals are CodeRefused, with every problem that was found."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache

    def pack_directory(self, root: Path, into: Path, *, but: Path | None = None) -> PackedCode:
        """The code in the folder `root`, but for that file, as `code-<digest>.zip` in the folder `into`."""
        walk = walk_code(root, but=but)
        problems = [*walk.problems, *code_problems([(file.path, file.size) for file in walk.files], CODE_LIMITS)]
        if problems:
            raise CodeRefused(list(dict.fromkeys(problems)))
        sources = [
            SourceFile(file.path, file.size, file.executable, partial(read_chunks, file.source)) for file in walk.files
        ]
        return _packed_code(sources, into)

    def pack_files(self, files: Sequence[InlineFile], into: Path) -> PackedCode:
        """Code that came within a request, as `code-<digest>.zip` in the folder `into`."""
        sources = [_inline_source(file) for file in files]
        _refuse([(file.path, file.size) for file in sources], INLINE_LIMITS)
        return _packed_code(sorted(sources, key=lambda file: file.path.encode()), into)

    def open_code(self, archive: Path) -> PackedCode:
        """The code in a zip that somebody uploaded. Nothing of it is unpacked to disk."""
        return verify_code(archive)

    def build_capsule(self, code: PackedCode, jobspec: bytes, into: Path) -> PackedCapsule:
        """`code` and ours together as `capsule-<digest>.zip` in the folder `into`."""
        if file_sha256(code.archive) != code.transport_sha256:
            raise Defect(f"the archive of code {code.digest} changed after it was verified; fetch it again.")
        runner = runner_pex(self._cache).read_bytes()
        ours = [
            CapsulePart(STARFORGE_MODULE, starforge_module()),
            CapsulePart(JOBSPEC_PATH, jobspec),
            CapsulePart(RUNNER_PATH, runner),
        ]
        files = tuple(_sorted([*code.files, *(part.file for part in ours)]))
        manifest = manifest_bytes(files)
        digest = files_digest(files)
        into.mkdir(parents=True, exist_ok=True)
        archive = into / f"capsule-{digest}.zip"
        write_capsule(code, [*ours, CapsulePart(MANIFEST_PATH, manifest)], archive)
        return PackedCapsule(
            digest=digest,
            code_digest=code.digest,
            files=files,
            archive=archive,
            bytes=archive.stat().st_size,
            transport_sha256=file_sha256(archive),
            runner_digest=Digest(ours[-1].file.sha256),
            manifest=manifest,
        )


def _packed_code(sources: Sequence[SourceFile], into: Path) -> PackedCode:
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=into, prefix=".code-", suffix=".zip", delete=False) as file:
        fresh = Path(file.name)
        try:
            files, problems = pack_files(sources, top=CODE_TOP, to=cast("BinaryIO", file))
            if problems:
                raise CodeRefused(problems)
        except BaseException:
            fresh.unlink()
            raise
    fresh.chmod(0o644)
    digest = files_digest(files)
    archive = fresh.replace(into / f"code-{digest}.zip")
    return PackedCode(digest, tuple(files), archive, archive.stat().st_size, file_sha256(archive))


def _inline_source(file: InlineFile) -> SourceFile:
    content = file.content.encode(errors="surrogatepass")
    return SourceFile(file.path, len(content), file.executable, partial(_slices, content))


def _slices(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), CHUNK_BYTES):
        yield content[start : start + CHUNK_BYTES]


def _refuse(files: Sequence[tuple[str, int]], limits: CodeLimits) -> None:
    problems = code_problems(files, limits)
    if problems:
        raise CodeRefused(problems)


def _sorted(files: Sequence[CapsuleFile]) -> list[CapsuleFile]:
    return sorted(files, key=lambda file: file.path.encode())
