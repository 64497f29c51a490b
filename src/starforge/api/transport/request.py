"""A GraphQL request's members, the same for a POST body, a GET query string and a `subscribe` frame."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class MalformedRequest(ValueError):
    """A member is missing or has the wrong shape; the sentence names it."""


@dataclass(frozen=True)
class GraphQLRequest:
    """`query` is empty where the document is meant by its `document_id` alone, until Persisted looked it up."""

    query: str
    operation_name: str | None = None
    variables: dict[str, Any] | None = None
    extensions: dict[str, Any] | None = None
    document_id: str | None = None


def read_request(body: object) -> GraphQLRequest:
    """Raises MalformedRequest. Members it does not know are ignored, as the HTTP specification demands."""
    if not isinstance(body, Mapping):
        raise MalformedRequest("A GraphQL request is a JSON object with a member `query`.")
    document_id = _string(body, "documentId")
    query = _string(body, "query")
    if not query and not document_id:
        raise MalformedRequest("`query` has to be a string with a GraphQL document, or `documentId` the id of one.")
    # Some clients send "" for a document's only, unnamed operation.
    name = _string(body, "operationName")
    variables, extensions = _object(body, "variables"), _object(body, "extensions")
    return GraphQLRequest(query or "", name, variables, extensions, document_id)


def _string(body: Mapping[str, Any], member: str) -> str | None:
    """None where it is missing, null or blank."""
    value = body.get(member)
    if not isinstance(value, str | None):
        raise MalformedRequest(f"`{member}` has to be a string or null.")
    return value if value and value.strip() else None


def _object(body: Mapping[str, Any], member: str) -> dict[str, Any] | None:
    value = body.get(member)
    if not isinstance(value, dict | None):
        raise MalformedRequest(f"`{member}` has to be a JSON object or null.")
    return value
