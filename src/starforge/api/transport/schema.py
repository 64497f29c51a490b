"""The strawberry schema as this transport wants it."""

from collections.abc import Iterable
from typing import Any

from graphql import GraphQLError
from strawberry import Schema
from strawberry.extensions import SchemaExtension
from strawberry.types import ExecutionContext, ExecutionResult
from strawberry.types.graphql import OperationType

from starforge.api.transport.documents import DocumentText, PreparedDocument
from starforge.api.transport.introspection import Introspection


class GatewaySchema(Schema):
    """Takes documents as Documents prepared them, and leaves the logging of errors to `errors.describe`, which masks
    them too, so that one error has one line in the log, under the id that the client was given."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._introspection = Introspection()

    async def execute(
        self,
        query: str | None,
        variable_values: dict[str, Any] | None = None,
        context_value: Any | None = None,
        root_value: Any | None = None,
        operation_name: str | None = None,
        allowed_operation_types: Iterable[OperationType] | None = None,
        operation_extensions: dict[str, Any] | None = None,
    ) -> ExecutionResult:
        if isinstance(query, DocumentText) and query.introspects(operation_name):
            return await self._introspection.answer(
                self._schema, query, query.parsed, variables=variable_values, operation_name=operation_name
            )
        return await super().execute(
            query,
            variable_values,
            context_value,
            root_value,
            operation_name,
            allowed_operation_types,
            operation_extensions,
        )

    def get_extensions(self, sync: bool = False) -> list[SchemaExtension]:
        return [PreparedDocument(), *super().get_extensions(sync)]

    def process_errors(self, errors: list[GraphQLError], execution_context: ExecutionContext | None = None) -> None:
        """Nothing: see the class."""
