"""Capsules and their files."""

from datetime import datetime
from typing import Annotated, Self

import strawberry
from strawberry import Info, argument

from starforge.api import ids
from starforge.api.capsules.pages import capsule_files
from starforge.api.context import of_info
from starforge.api.directives import cost, page_size
from starforge.api.enums import CodeStatus
from starforge.api.interfaces import Node
from starforge.api.links import link
from starforge.api.mirror import mirror
from starforge.api.paging import PageArgs
from starforge.api.payloads import MutationPayload
from starforge.api.scalars import BigInt
from starforge.api.values import PageInfo, SignedRequest
from starforge.domain.capsule import capsule_key
from starforge.domain.changes import CapsuleRecord


@strawberry.type(description="A file of a Capsule.")
class CapsuleFile:
    path: str = strawberry.field(description="Path below the top directory, with forward slashes.")
    bytes: BigInt = strawberry.field(description="Size in bytes.")
    sha256: str = strawberry.field(description="sha256 of its content, in lower-case hexadecimal.")
    executable: bool = strawberry.field(description="Whether it may be executed.")


@strawberry.type(description="A content-addressed package: the user's code, the spec, a manifest and the runner.")
class Capsule(Node):
    row: strawberry.Private[CapsuleRecord]
    digest: str = strawberry.field(
        description=(
            "sha256 of the canonical manifest, in lower-case hexadecimal: the same input gives the same digest on any"
            " machine."
        )
    )
    code_digest: str = strawberry.field(
        description=("sha256 of the manifest of the code alone: equal for jobs that differ only in their spec.")
    )
    files: int = strawberry.field(description="Number of files.")
    bytes: BigInt = strawberry.field(description="Size of the zip in bytes.")
    transport_sha256: str = strawberry.field(
        description=("sha256 of the zip as transferred, which may differ between equal Capsules.")
    )
    runner_digest: str = strawberry.field(description="Digest of the runner in it.")
    created_at: datetime = strawberry.field(description="When it was stored.")

    @strawberry.field(
        description=("Its files in path order; null, with an error, when the object store can't be asked."),
        directives=[cost(5), page_size()],
    )
    async def contents(
        self,
        info: Info,
        path_prefix: Annotated[str | None, argument("Only files whose path starts with this.")] = None,
        first: Annotated[int | None, argument("Return the first this many, 1 to 100.")] = None,
        after: Annotated[str | None, argument("Continue after this cursor.")] = None,
        last: Annotated[int | None, argument("Return the last this many, 1 to 100.")] = None,
        before: Annotated[str | None, argument("Stop before this cursor.")] = None,
    ) -> "CapsuleFileConnection | None":
        page = PageArgs(first, after, last, before)
        found = await capsule_files(of_info(info), self.row.digest, path_prefix or "", page)
        files = [
            CapsuleFile(path=file.path, bytes=BigInt(file.size), sha256=file.sha256, executable=file.executable)
            for file in found.files
        ]
        return CapsuleFileConnection(
            edges=[
                CapsuleFileEdge(cursor=cursor, node=file) for cursor, file in zip(found.cursors, files, strict=True)
            ],
            nodes=files,
            page_info=found.page_info,
            total_count=found.total,
            total_count_exact=True,
        )

    @strawberry.field(
        description=(
            "A link to download the zip, or null if the caller may not; only in queries, never in subscriptions."
        ),
        directives=[cost(5)],
    )
    async def download(
        self,
        info: Info,
        expires_in_seconds: Annotated[int, argument("Life of the link in seconds, 60 to 3,600.")] = 300,
    ) -> SignedRequest | None:
        return await link(of_info(info), capsule_key(self.row.digest), expires_in_seconds)

    @classmethod
    def of(cls, row: CapsuleRecord) -> Self:
        return mirror(
            cls,
            row,
            id=strawberry.ID(ids.capsule(row.digest)),
            row=row,
            code_digest=row.code,
        )


@strawberry.type(description="A file and its cursor.", directives=[cost(0)])
class CapsuleFileEdge:
    cursor: str = strawberry.field(description="Cursor of this file.")
    node: CapsuleFile = strawberry.field(description="The file.")


@strawberry.type(description="A page of files.")
class CapsuleFileConnection:
    edges: list[CapsuleFileEdge] = strawberry.field(description="The files with their cursors.")
    nodes: list[CapsuleFile] = strawberry.field(description="The files alone.")
    page_info: PageInfo = strawberry.field(description="Where the page lies.")
    total_count: int = strawberry.field(
        description=("How many match in all, exact up to 10,000 and 10,000 beyond."), directives=[cost(5)]
    )
    total_count_exact: bool = strawberry.field(
        description="False when there are more than `totalCount` says.", directives=[cost(5)]
    )


@strawberry.type(description="Answer to `prepareCode`.")
class PrepareCodePayload(MutationPayload):
    status: CodeStatus = strawberry.field(description="Whether anything has to be sent.")
    digest: str | None = strawberry.field(description=("Digest to name the code by in `CodeInput`; null if refused."))
    upload: SignedRequest | None = strawberry.field(description=("Where to send the zip; null unless UPLOAD_NEEDED."))
