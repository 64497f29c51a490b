"""Documents are parsed, measured and validated once per text, whatever they arrive by."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from graphql import DocumentNode, GraphQLError, OperationDefinitionNode, OperationType, parse
from strawberry import Schema
from strawberry.extensions import SchemaExtension

from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.costs import Costs
from starforge.api.transport.deprecated import deprecations, extension
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.introspection import MixedIntrospection, introspects
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.measure import Size, measure
from starforge.api.transport.prices import Prices
from starforge.api.transport.validation import TooManyComparisons, rest, validation_errors


@dataclass(frozen=True)
class Document:
    """A valid document."""

    text: "DocumentText"
    operations: tuple[OperationDefinitionNode, ...]
    costs: Costs
    cost_max: int

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

    @property
    def weight(self) -> int:
        """What it takes to keep, in tokens of about 430 bytes each; long strings count by their length."""
        return self.text.parsed.token_count + len(self.text) // 256

    def cost(self, operation_name: str | None, variables: Mapping[str, Any] | None) -> int:
        """Points that the named, or the only, operation costs at most. What is wrong with the variables, execution
        tells: here they count as left out."""
        return self.costs.of(operation_name, variables or {})

    def bounded_cost(self, operation_name: str | None, variables: Mapping[str, Any] | None) -> int:
        """The cost. Raises RequestRefused if it is more than any document may cost."""
        cost = self.cost(operation_name, variables)
        if cost > self.cost_max:
            raise _too_expensive(f"It costs {cost} points, and may cost {self.cost_max}.")
        return cost


def _name(node: OperationDefinitionNode) -> str | None:
    return node.name.value if node.name else None


class DocumentText(str):
    """A document's text that carries its parsed and validated form, for PreparedDocument to find."""

    __slots__ = ("digest", "extensions", "introspecting", "parsed")
    digest: bytes
    """Of the text; stands for it where the document itself must not be held on to."""
    parsed: DocumentNode
    introspecting: frozenset[str | None]
    """Names of the operations that ask for the schema alone; None for one without a name."""
    extensions: Mapping[str, Any]
    """What goes into the `extensions` of every answer."""

    def introspects(self, operation_name: str | None) -> bool:
        """Whether the named, or the only, operation asks for the schema alone."""
        return operation_name in self.introspecting or (operation_name is None and len(self.introspecting) == 1)


class PreparedDocument(SchemaExtension):
    """Makes strawberry take the document that Documents prepared, in place of parsing and validating it again."""

    def on_parse(self) -> Iterator[None]:
        query = self.execution_context.query
        if isinstance(query, DocumentText):
            self.execution_context.graphql_document = query.parsed
            self.execution_context.pre_execution_errors = []  # strawberry validates where this is None
        yield


def check_document(schema: Schema, text: str, limits: TransportLimits, prices: Prices | None = None) -> Document:
    """Raises RequestRefused with every reason why this document is not run."""
    parsed = _parse(text, limits)
    rest()
    try:
        measured = measure(parsed, schema._schema, prices or Prices(schema._schema))
        _refuse_large(measured.size, limits)
        rest()
        errors = validation_errors(schema._schema, parsed)
        introspecting = frozenset(name for name, operation in measured.operations.items() if introspects(operation))
    except RecursionError as error:
        raise _too_expensive("It is nested too deeply.") from error
    except TooManyComparisons as error:
        raise _too_expensive("It asks for the same fields too often in one place.") from error
    except MixedIntrospection as error:
        raise _too_expensive("`__schema` and `__type` are asked for in an operation with nothing else.") from error
    if errors:
        raise RequestRefused(ErrorCode.GRAPHQL_VALIDATION_FAILED, *errors)
    operations = tuple(node for node in parsed.definitions if isinstance(node, OperationDefinitionNode))
    prepared = DocumentText(text)
    prepared.parsed = parsed
    prepared.digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
    prepared.introspecting = introspecting
    prepared.extensions = extension(deprecations(parsed, schema._schema))
    return Document(prepared, operations, Costs(operations, measured.operations), limits.document_cost)


def _parse(text: str, limits: TransportLimits) -> DocumentNode:
    if len(text) > limits.document_bytes or len(text.encode(errors="surrogatepass")) > limits.document_bytes:
        raise _too_expensive(f"A document may have {limits.document_bytes} bytes.")
    try:
        parsed = parse(text, max_lexical_tokens=limits.document_tokens, max_comments=limits.document_tokens)
        _unlink_tokens(parsed)
        return parsed
    except GraphQLError as error:
        if "Parsing aborted" in error.message:
            raise _too_expensive(error.message) from error
        raise RequestRefused(ErrorCode.GRAPHQL_PARSE_FAILED, error) from error


def _unlink_tokens(parsed: DocumentNode) -> None:
    """Tokens that are linked both ways are garbage to be collected; a chain frees itself."""
    token = parsed.loc.start_token if parsed.loc else None
    while token:
        token.prev = None
        token = token.next


def _refuse_large(size: Size, limits: TransportLimits) -> None:
    for what, has, may in (
        ("levels of nested fields", size.depth, limits.document_depth),
        ("aliases", size.aliases, limits.document_aliases),
        ("fields", size.fields, limits.document_fields),
    ):
        if has > may:
            raise _too_expensive(f"It has {has} {what}, and may have {may}.")


def _too_expensive(why: str) -> RequestRefused:
    return RequestRefused(ErrorCode.DOCUMENT_TOO_EXPENSIVE, f"The document is too large. {why} Ask for less at a time.")


def _outcome(schema: Schema, text: str, limits: TransportLimits, prices: Prices) -> Document | RequestRefused:
    """Without an exception that leaves the thread: it would hold on to all that its frames worked with."""
    try:
        return check_document(schema, text, limits, prices)
    except RequestRefused as refused:
        return refused.again()
    except Exception as error:  # noqa: BLE001  because_of logs it, and a task must not keep it for itself
        return RequestRefused.because_of(error).again()


class Documents:
    """The documents of one schema; the least recently used go first."""

    def __init__(self, schema: Schema, limits: TransportLimits) -> None:
        self._schema = schema
        self._limits = limits
        self._prices = Prices(schema._schema)
        # One thread: two would take the interpreter from the loop twice as often, and be no faster.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="documents")
        self._ready: OrderedDict[str, Document] = OrderedDict()
        self._held = 0
        self._checks: dict[str, asyncio.Task[Document | RequestRefused]] = {}

    async def prepare(self, text: str) -> Document:
        """Raises RequestRefused. Many that ask for one new text at the same time wait for one check of it, and only so
        many different texts may wait."""
        if (known := self._ready.get(text)) is not None:
            self._ready.move_to_end(text)
            return known
        check = self._checks.get(text)
        if check is None:
            if len(self._checks) >= self._limits.waiting_documents:
                raise RequestRefused(ErrorCode.UNAVAILABLE, "Too many new documents wait to be checked: try again.")
            check = self._checks[text] = asyncio.create_task(self._check(text))
        outcome = await asyncio.shield(check)
        if isinstance(outcome, RequestRefused):
            raise outcome.again()
        return outcome

    async def _check(self, text: str) -> Document | RequestRefused:
        try:
            # Off the loop: validation of a hostile document takes a tenth of a second.
            loop = asyncio.get_running_loop()
            outcome = await loop.run_in_executor(self._thread, _outcome, self._schema, text, self._limits, self._prices)
        finally:
            del self._checks[text]
        if isinstance(outcome, RequestRefused):
            return outcome
        self._keep(text, outcome)
        return outcome

    def _keep(self, text: str, document: Document) -> None:
        self._ready[text] = document
        self._held += document.weight
        while len(self._ready) > self._limits.cached_documents or self._held > self._limits.cached_tokens:
            _, forgotten = self._ready.popitem(last=False)
            self._held -= forgotten.weight
