"""Documents are parsed, measured and validated once per text, whatever they arrive by."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass

from graphql import DocumentNode, GraphQLError, OperationDefinitionNode, OperationType, parse, specified_rules
from strawberry import Schema
from strawberry.extensions import SchemaExtension
from strawberry.schema.schema import validate_document

from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.document_size import size_of
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.limits import TransportLimits


@dataclass(frozen=True)
class Document:
    """A valid document."""

    text: "DocumentText"
    operations: tuple[OperationDefinitionNode, ...]

    def kind(self, operation_name: str | None) -> OperationType:
        """What the named, or the only, operation is. Raises RequestRefused if that can't be told."""
        named = [node for node in self.operations if operation_name is None or _name(node) == operation_name]
        if len(named) == 1:
            return named[0].operation
        if operation_name is None:
            sentence = f"The document has {len(self.operations)} operations: say which to run in `operationName`."
        else:
            sentence = f"The document has no operation called '{operation_name}'."
        raise RequestRefused(ErrorCode.OPERATION_RESOLUTION_FAILURE, sentence)


def _name(node: OperationDefinitionNode) -> str | None:
    return node.name.value if node.name else None


class DocumentText(str):
    """A document's text that carries its parsed and validated form, for PreparedDocument to find."""

    __slots__ = ("parsed",)
    parsed: DocumentNode


class PreparedDocument(SchemaExtension):
    """Makes strawberry take the document that Documents prepared, in place of parsing and validating it again."""

    def on_parse(self) -> Iterator[None]:
        query = self.execution_context.query
        if isinstance(query, DocumentText):
            self.execution_context.graphql_document = query.parsed
            self.execution_context.pre_execution_errors = []  # strawberry validates where this is None
        yield


def check_document(schema: Schema, text: str, limits: TransportLimits) -> Document:
    """Raises RequestRefused with every reason why this document is not run."""
    parsed = _parse(text, limits)
    try:
        _refuse_large(parsed, limits)
        errors = validate_document(schema._schema, parsed, tuple(specified_rules))
    except RecursionError as error:
        raise _too_expensive("It is nested too deeply.") from error
    if errors:
        raise RequestRefused(ErrorCode.GRAPHQL_VALIDATION_FAILED, *errors)
    operations = tuple(node for node in parsed.definitions if isinstance(node, OperationDefinitionNode))
    prepared = DocumentText(text)
    prepared.parsed = parsed
    return Document(prepared, operations)


def _parse(text: str, limits: TransportLimits) -> DocumentNode:
    if len(text.encode(errors="surrogatepass")) > limits.document_bytes:
        raise _too_expensive(f"A document may have {limits.document_bytes} bytes.")
    try:
        return parse(text, max_lexical_tokens=limits.document_tokens, max_comments=limits.document_tokens)
    except GraphQLError as error:
        if "Parsing aborted" in error.message:
            raise _too_expensive(error.message) from error
        raise RequestRefused(ErrorCode.GRAPHQL_PARSE_FAILED, error) from error


def _refuse_large(parsed: DocumentNode, limits: TransportLimits) -> None:
    size = size_of(parsed)
    for what, has, may in (
        ("levels of nested fields", size.depth, limits.document_depth),
        ("aliases", size.aliases, limits.document_aliases),
        ("fields", size.fields, limits.document_fields),
    ):
        if has > may:
            raise _too_expensive(f"It has {has} {what}, and may have {may}.")


def _too_expensive(why: str) -> RequestRefused:
    return RequestRefused(ErrorCode.DOCUMENT_TOO_EXPENSIVE, f"The document is too large. {why} Ask for less at a time.")


class Documents:
    """The documents of one schema; the least recently used go first."""

    def __init__(self, schema: Schema, limits: TransportLimits) -> None:
        self._schema = schema
        self._limits = limits
        self._ready: OrderedDict[str, Document] = OrderedDict()
        self._checks: dict[str, asyncio.Task[Document | RequestRefused]] = {}

    async def prepare(self, text: str) -> Document:
        """Raises RequestRefused. Many that ask for one new text at the same time wait for one check of it."""
        if (known := self._ready.get(text)) is not None:
            self._ready.move_to_end(text)
            return known
        check = self._checks.get(text)
        if check is None:
            check = self._checks[text] = asyncio.create_task(self._check(text))
        outcome = await asyncio.shield(check)
        if isinstance(outcome, RequestRefused):
            raise outcome
        return outcome

    async def _check(self, text: str) -> Document | RequestRefused:
        try:
            # Off the loop: validation of a hostile document takes a tenth of a second.
            document = await asyncio.to_thread(check_document, self._schema, text, self._limits)
        except RequestRefused as refused:
            return refused
        except Exception as error:  # noqa: BLE001  because_of logs it, and a task must not keep it for itself
            return RequestRefused.because_of(error)
        finally:
            del self._checks[text]
        self._ready[text] = document
        if len(self._ready) > self._limits.cached_documents:
            self._ready.popitem(last=False)
        return document
