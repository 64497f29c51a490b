"""What differs between two jobs."""

import asyncio
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import strawberry

from starforge.api.capsules.pages import manifest
from starforge.api.capsules.types import CapsuleFile
from starforge.api.context import Context
from starforge.api.directives import list_size
from starforge.api.enums import DifferenceKind
from starforge.api.scalars import BigInt
from starforge.domain import capsule
from starforge.domain import job as domain
from starforge.domain.errors import StarForgeError
from starforge.domain.names import Digest
from starforge.domain.ports import Ports
from starforge.domain.spec import JobSpec

if TYPE_CHECKING:
    from starforge.api.jobs.types import Job

DIFFERENCES_MAX = 1000
Path = tuple[str, ...]
LazyJob = Annotated["Job", strawberry.lazy("starforge.api.jobs.types")]


@strawberry.type(description="A difference between two specs.")
class SpecDifference:
    path: list[str] = strawberry.field(description='Path in the spec, for example ["pools", "0", "machines"].')
    left: str | None = strawberry.field(description="Value on the left as JSON text; null if it is not there.")
    right: str | None = strawberry.field(description="Value on the right as JSON text; null if it is not there.")


@strawberry.type(description="A difference between two sets of files.")
class FileDifference:
    path: str = strawberry.field(description="Path of the file.")
    kind: DifferenceKind = strawberry.field(description="What happened to it from left to right.")
    left: CapsuleFile | None = strawberry.field(description="The file on the left; null if it was added.")
    right: CapsuleFile | None = strawberry.field(description="The file on the right; null if it was removed.")


@dataclass
class Files:
    """Differences of the files of two jobs, read from the object store once for all who ask."""

    context: Context
    left: domain.Job
    right: domain.Job
    _reading: list["asyncio.Task[list[FileDifference] | None]"] = field(default_factory=list)

    async def all(self) -> list[FileDifference] | None:
        """Every difference in path order, None while one of the Capsules is not built."""
        if not self._reading:
            self._reading.append(asyncio.create_task(self._read()))
        return await asyncio.shield(self._reading[0])

    async def _read(self) -> list[FileDifference] | None:
        left, right = self.left.capsule, self.right.capsule
        if left is None or right is None:
            return None
        if self.left.code == self.right.code:
            return []
        return await self.context.services.objects_thread(_files, self.context.ports, left, right)


def _files(ports: Ports, left: Digest, right: Digest) -> list[FileDifference]:
    old, new = _code_of(ports, left), _code_of(ports, right)
    paths = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
    return [_file(path, old.get(path), new.get(path)) for path in paths]


def _code_of(ports: Ports, digest: Digest) -> Mapping[str, capsule.CapsuleFile]:
    """The user's own files of a Capsule by path."""
    ours = (capsule.STARFORGE_DIR, capsule.STARFORGE_MODULE)
    return {file.path: file for file in manifest(ports, digest) if file.path.partition("/")[0] not in ours}


def _file(path: str, old: capsule.CapsuleFile | None, new: capsule.CapsuleFile | None) -> FileDifference:
    kind = DifferenceKind.CHANGED if old and new else DifferenceKind.REMOVED if old else DifferenceKind.ADDED
    return FileDifference(path=path, kind=kind, left=_shown(old), right=_shown(new))


def _shown(file: capsule.CapsuleFile | None) -> CapsuleFile | None:
    if file is None:
        return None
    return CapsuleFile(path=file.path, bytes=BigInt(file.size), sha256=file.sha256, executable=file.executable)


@strawberry.type(description="What differs between two jobs.")
class JobDiff:
    differing: strawberry.Private[Files]
    left: LazyJob = strawberry.field(description="The job asked.")
    right: LazyJob = strawberry.field(description="The job it is compared with.")

    @strawberry.field(description="True when both run exactly the same code.")
    def same_code(self) -> bool:
        left, right = self.differing.left, self.differing.right
        return left.id == right.id or (left.code is not None and left.code == right.code)

    @strawberry.field(description="Differences of the specs, in path order; at most 1,000.", directives=[list_size(20)])
    def spec(self) -> list[SpecDifference]:
        return spec_differences(self.differing.left.spec, self.differing.right.spec)[:DIFFERENCES_MAX]

    @strawberry.field(
        description=(
            "Differences of the code files, in path order, at most 1,000; null while one of the Capsules is not built."
        ),
        directives=[list_size(50)],
    )
    async def files(self) -> list[FileDifference] | None:
        found = await self.differing.all()
        return None if found is None else found[:DIFFERENCES_MAX]

    @strawberry.field(description="True when there are more differing files than are listed.")
    async def files_truncated(self) -> bool:
        try:
            found = await self.differing.all()
        except StarForgeError:  # told at `files`, which can be null; none is listed then
            return False
        return found is not None and len(found) > DIFFERENCES_MAX


def spec_differences(left: JobSpec, right: JobSpec) -> list[SpecDifference]:
    """Every value that is not the same on both sides, by its path in JobSpecInput."""
    old, new = dict(_leaves(asdict(left))), dict(_leaves(asdict(right)))
    paths = sorted((path for path in old.keys() | new.keys() if old.get(path) != new.get(path)), key=_order)
    return [SpecDifference(path=list(path), left=old.get(path), right=new.get(path)) for path in paths]


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, str]]:
    """Each value that is no list or object as JSON text; what is null is not there."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, _camel(name)))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for index, inner in enumerate(value):
            yield from _leaves(inner, (*path, str(index)))
    elif value is not None:
        yield path, json.dumps(value, ensure_ascii=False)


def _camel(name: str) -> str:
    return re.sub("_([a-z])", lambda found: found[1].upper(), name)


def _order(path: Path) -> list[tuple[int, str]]:
    return [(int(step), "") if step.isdecimal() else (-1, step) for step in path]
