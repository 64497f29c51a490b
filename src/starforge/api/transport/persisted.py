"""Documents that clients mean by an id: a manifest that the gateway is started with, and whether others are taken."""

import json
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from strawberry import Schema

from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.documents import Document, check_document
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.prices import Prices
from starforge.api.transport.request import GraphQLRequest
from starforge.domain.errors import Problem, SettingsWrong

SETTING = "FORGE_PERSISTED_MANIFEST"
SHA256 = "sha256:"


def id_of(text: str) -> str:
    """The id that a document's text has by itself."""
    return SHA256 + sha256(text.encode(errors="surrogatepass")).hexdigest()


class Persisted:
    """`documents` by id. With `only`, a text that is none of them is refused."""

    def __init__(self, documents: Mapping[str, str] | None = None, *, only: bool = False) -> None:
        self._documents = dict(documents or {})
        self._texts = frozenset(self._documents.values())
        self._only = only

    def resolve(self, request: GraphQLRequest) -> GraphQLRequest:
        """The request with the text of its document. Raises RequestRefused."""
        meant = self._meant(request) if request.document_id else request.query
        if self._only and meant not in self._texts:
            sentence = "This gateway runs persisted documents only, and this is none of them: send a `documentId`."
            raise RequestRefused(ErrorCode.PERSISTED_DOCUMENT_NOT_FOUND, sentence)
        return request if meant is request.query else replace(request, query=meant)

    def _meant(self, request: GraphQLRequest) -> str:
        named = request.document_id or ""
        text = self._documents.get(named)
        if request.query:
            if text == request.query or (text is None and named.lower() == id_of(request.query)):
                return request.query
            sentence = "`query` and `documentId` mean different documents: send one of them."
            raise RequestRefused(ErrorCode.BAD_REQUEST, sentence)
        if text is None:
            sentence = "There is no persisted document with this `documentId`: publish the manifest, then ask again."
            raise RequestRefused(ErrorCode.PERSISTED_DOCUMENT_NOT_FOUND, sentence)
        return text


def load_persisted(path: Path | None, schema: Schema, limits: TransportLimits, *, only: bool) -> Persisted:
    """The manifest at `path`, a JSON object of documents by id. Raises SettingsWrong for the first that is wrong."""
    if path is None:
        return Persisted(only=only)
    documents, prices = _read(path), Prices(schema._schema)
    for name, text in documents.items():
        if name.startswith(SHA256) and name != id_of(text):
            raise _wrong(path, f"the document {name} has another hash, {id_of(text)}")
        try:
            _refuse_expensive(check_document(schema, text, limits, prices))
        except RequestRefused as refused:
            raise _wrong(path, f"the document {name} can't be run ({str(refused).rstrip('.')})") from refused
    return Persisted(documents, only=only)


def _refuse_expensive(document: Document) -> None:
    for operation in document.operations:
        document.bounded_cost(operation.name.value if operation.name else None, {})


def _read(path: Path) -> dict[str, str]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise _wrong(path, "it can't be read as JSON") from error
    if not isinstance(found, dict) or not all(isinstance(text, str) and name for name, text in found.items()):
        raise _wrong(path, "it has to be an object with a document, a string, under each id")
    return found


def _wrong(path: Path, why: str) -> SettingsWrong:
    message = f"{SETTING} {path} is wrong: {why}. Make it with `starforge persist`, for this version."
    return SettingsWrong([Problem("INVALID", (SETTING,), message)])
