"""Runs one operation over strawberry: prepared document in, answers as the client gets them out."""

import asyncio
from collections.abc import AsyncGenerator, Hashable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic

from graphql import GraphQLError, OperationType
from strawberry import Schema
from strawberry.types.execution import ExecutionResult, PreExecutionError

from starforge.api.transport.answers import Answer, Answers
from starforge.api.transport.callers import (
    Callers,
    CallerT,
    CostTold,
    Incoming,
    Keeping,
    MakeContext,
    RenewedPerEvent,
)
from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.documents import Document, Documents
from starforge.api.transport.encoding import encode_json, encode_response, encode_sorted
from starforge.api.transport.errors import RequestRefused, cause_of, describe
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.mutations import RunningMutations
from starforge.api.transport.request import GraphQLRequest
from starforge.api.transport.source import Cut, Source, TellsSource
from starforge.domain.errors import StarForgeError, StoreUnavailable


@dataclass(frozen=True)
class Prepared:
    """What a request asks for, once its document is known to be valid and its cost is paid."""

    request: GraphQLRequest
    document: Document
    kind: OperationType
    points: int = 0
    cost: CostTold | None = None
    answer_key: Hashable | None = None
    """What the answer is a function of beside the position of the feed; None if it is one of more than that."""

    def arguments(self) -> dict[str, Any]:
        return {
            "query": self.document.text,
            "variable_values": self.request.variables,
            "operation_name": self.request.operation_name,
            "operation_extensions": self.request.extensions,
        }


class Executor(Generic[CallerT]):
    def __init__(
        self,
        schema: Schema,
        callers: Callers[CallerT],
        *,
        make_context: MakeContext[CallerT],
        limits: TransportLimits,
        mutations: RunningMutations,
        keeping: Keeping | None = None,
    ) -> None:
        self._schema = schema
        self._callers = callers
        self._make_context = make_context
        self._limits = limits
        self._mutations = mutations
        self._documents = Documents(schema, limits)
        self._keeping = keeping
        self._answering: dict[tuple[Hashable, int], asyncio.Task[Answer | dict[str, Any] | RequestRefused]] = {}
        self.answers = Answers(keeping.position if keeping else lambda: None)

    async def prepare(self, request: GraphQLRequest, caller: CallerT) -> Prepared:
        """Raises RequestRefused."""
        try:
            request = self._callers.resolve(request)
            document = await self._documents.prepare(request.query)
            kind = document.kind(request.operation_name)
            points = document.bounded_cost(request.operation_name, request.variables)
            cost = self._callers.charge(caller, points)
        except StarForgeError as error:
            raise RequestRefused.because_of(error) from error
        return Prepared(request, document, kind, points, cost, self._answer_key(request, document, kind, caller))

    async def answer(self, operation: Prepared, incoming: Incoming[CallerT]) -> bytes:
        """A response with `data`, of a query or mutation, as JSON. Raises RequestRefused if it could not be run."""
        key = operation.answer_key
        kept = self.answers.get(key) if key is not None else None
        if kept is not None:
            return kept.body(self.extensions(operation))
        response = await self._once(key, operation, incoming)
        if isinstance(response, Answer):
            return response.body(self.extensions(operation))
        if extensions := _told_with(operation):
            response = response | {"extensions": response.get("extensions", {}) | extensions}
        return _encoded(response)

    async def _once(
        self, key: Hashable | None, operation: Prepared, incoming: Incoming[CallerT]
    ) -> Answer | dict[str, Any]:
        """A response that can be kept is made once for all who ask the same while the feed stands still."""
        since = self.answers.position()
        if key is None or since is None:
            return await self._run(operation, incoming)
        running = self._answering.get((key, since))
        if running is None:
            running = self._answering[key, since] = asyncio.create_task(self._make(key, since, operation, incoming))
            running.add_done_callback(lambda _: self._answering.pop((key, since), None))
        made = await asyncio.shield(running)
        if isinstance(made, RequestRefused):
            raise made.again()
        return made

    async def _make(
        self, key: Hashable, since: int, operation: Prepared, incoming: Incoming[CallerT]
    ) -> Answer | dict[str, Any] | RequestRefused:
        try:
            response = await self._run(operation, incoming)
            if response.keys() != {"data"}:
                return response
            answer = Answer.of(_encoded(response))
        except RequestRefused as refused:
            return refused
        self.answers.put(key, answer, since=since)
        return answer

    def _answer_key(
        self, request: GraphQLRequest, document: Document, kind: OperationType, caller: CallerT
    ) -> Hashable | None:
        name, text = request.operation_name, document.text
        if kind is not OperationType.QUERY or self._keeping is None:
            return None
        if not self._keeping.is_stable(text.parsed, name):
            return None
        return text.digest, name, encode_sorted(request.variables or {}), self._callers.sharing(caller, request)

    def extensions(self, operation: Prepared) -> bytes | None:
        told = _told_with(operation)
        return encode_json(told).encode() if told else None

    async def _run(self, operation: Prepared, incoming: Incoming[CallerT]) -> dict[str, Any]:
        work = self._execute(operation, incoming)
        if operation.kind is OperationType.MUTATION:
            work = self._mutations.run(work)
        try:
            async with asyncio.timeout(self._limits.execution_timeout_s):
                return await work
        except TimeoutError as error:
            raise _timed_out(operation.kind, self._limits.execution_timeout_s) from error

    async def _execute(self, operation: Prepared, incoming: Incoming[CallerT]) -> dict[str, Any]:
        try:
            context = self._make_context(incoming)
            result = await self._schema.execute(**operation.arguments(), context_value=context)
        except Exception as error:
            raise RequestRefused.because_of(error) from error
        return _response(result)

    async def stream(
        self, operation: Prepared, incoming: Incoming[CallerT], source: Source
    ) -> AsyncGenerator[dict[str, Any], None]:
        """A response per event of a subscription. Raises RequestRefused where the subscription ends with an error."""
        try:
            context = self._make_context(incoming)
            if isinstance(context, TellsSource):
                context.source = source
            results = await self._schema.stream(**operation.arguments(), context_value=context)
            async with aclosing(results):
                _renew(context)
                async for result in results:
                    yield _response(result)
                    _renew(context)
        except RequestRefused:
            raise
        except Exception as error:
            raise RequestRefused.because_of(error) from error


def _told_with(operation: Prepared) -> dict[str, Any]:
    """`extensions` of its answer."""
    cost = {"cost": operation.cost} if operation.cost else {}
    return {**operation.document.text.extensions, **cost}


def _encoded(response: dict[str, Any]) -> bytes:
    try:
        return encode_response(response)
    except (TypeError, ValueError) as error:
        raise RequestRefused.because_of(error) from error


def _renew(context: object) -> None:
    if isinstance(context, RenewedPerEvent):
        context.renew()


def _response(result: Any) -> dict[str, Any]:
    """Raises RequestRefused if the result is no response with data but the end of the operation: its document or
    variables were refused, or its generator raised."""
    if not isinstance(result, ExecutionResult):
        raise RequestRefused.because_of(TypeError(f"a schema with @defer or @stream gave {type(result).__name__}"))
    errors = [describe(error) for error in result.errors or ()]
    if isinstance(result, PreExecutionError) or (result.data is None and _all_without_path(result.errors)):
        raise RequestRefused.with_errors(errors)
    is_cut = any(isinstance(cause_of(error), StoreUnavailable) for error in result.errors or ())
    response: dict[str, Any] = Cut(data=result.data) if is_cut else {"data": result.data}
    if errors:
        response["errors"] = errors
    if result.extensions:
        response["extensions"] = result.extensions
    return response


def _all_without_path(errors: list[GraphQLError] | None) -> bool:
    return bool(errors) and all(error.path is None for error in errors or ())


def _timed_out(kind: OperationType, seconds: float) -> RequestRefused:
    sentence = f"The {kind.value} took longer than {seconds:g} seconds and was given up."
    if kind is OperationType.MUTATION:
        sentence += " It may still be done: look, or send it again with the same idempotency key."
    return RequestRefused(ErrorCode.TIMEOUT, sentence)
