"""The strawberry schema as this transport wants it."""

from graphql import GraphQLError
from strawberry import Schema
from strawberry.extensions import SchemaExtension
from strawberry.types import ExecutionContext

from starforge.api.transport.documents import PreparedDocument


class GatewaySchema(Schema):
    """Takes documents as Documents prepared them, and leaves the logging of errors to `errors.describe`, which masks
    them too, so that one error has one line in the log, under the id that the client was given."""

    def get_extensions(self, sync: bool = False) -> list[SchemaExtension]:
        return [PreparedDocument(), *super().get_extensions(sync)]

    def process_errors(self, errors: list[GraphQLError], execution_context: ExecutionContext | None = None) -> None:
        """Nothing: see the class."""
