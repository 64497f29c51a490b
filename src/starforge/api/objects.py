"""Signed links to the objects of a directory, which the gateway has to serve itself."""

import logging
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response
from starlette.routing import Route

from starforge.domain.capsule import CODE_LIMITS
from starforge.domain.errors import ObjectStoreUnavailable

_log = logging.getLogger(__name__)


class Directory(Protocol):
    """What is served of a directory store."""

    def verify(self, key: str, method: str, query: Mapping[str, str]) -> bool: ...

    def must_be_new(self, query: Mapping[str, str]) -> bool: ...

    def path(self, key: str) -> Path: ...

    def put(self, key: str, source: Path | bytes, *, only_new: bool = False) -> bool: ...


def object_routes(directory: Directory) -> list[Route]:
    """GET and PUT of signed links below /objects."""

    async def serve(request: Request) -> Response:
        try:
            return await _serve(directory, request)
        except ObjectStoreUnavailable:
            _log.exception("An object could not be served.")
            return PlainTextResponse("The objects can't be read or written right now; try again.", 503)

    return [Route("/objects/{key:path}", serve, methods=["GET", "PUT"])]


async def _serve(directory: Directory, request: Request) -> Response:
    key, query = request.path_params["key"], dict(request.query_params)
    if not await run_in_threadpool(directory.verify, key, request.method, query):
        return PlainTextResponse("This link is not valid, or no longer.", 403)
    if request.method == "PUT":
        return await _put(directory, key, request)
    return await run_in_threadpool(_get, directory.path(key))


def _get(path: Path) -> Response:
    return FileResponse(path) if path.is_file() else PlainTextResponse("There is no such object.", 404)


async def _put(directory: Directory, key: str, request: Request) -> Response:
    handle, name = tempfile.mkstemp(prefix="starforge-put-")
    draft = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            size = 0
            async for chunk in request.stream():
                size += len(chunk)
                if size > CODE_LIMITS.bytes:
                    return PlainTextResponse("This is too large.", 413)
                await run_in_threadpool(file.write, chunk)
        only_new = directory.must_be_new(dict(request.query_params))
        stored = await run_in_threadpool(directory.put, key, draft, only_new=only_new)
        return Response(status_code=200 if stored else 412)
    finally:
        await run_in_threadpool(draft.unlink, missing_ok=True)
