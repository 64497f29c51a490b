"""A GraphQL request's members, the same for a POST body, a GET query string and a `subscribe` frame."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class MalformedRequest(ValueError):
    """A member is missing or has the wrong shape; the sentence names it."""


@dataclass(frozen=True)
class GraphQLRequest:
    query: str
    operation_name: str | None = None
    variables: dict[str, Any] | None = None
    extensions: dict[str, Any] | None = None


def read_request(body: object) -> GraphQLRequest:
    """Raises MalformedRequest. Members it does not know are ignored, as the HTTP specification demands."""
    if not isinstance(body, Mapping):
        raise MalformedRequest("A GraphQL request is a JSON object with a member `query`.")
    query = body.get("query")
    if not isinstance(query, str) or not query.strip():
        raise MalformedRequest("`query` has to be a string with a GraphQL document.")
    name = body.get("operationName")
    if not isinstance(name, str | None):
        raise MalformedRequest("`operationName` has to be a string or null.")
    # Some clients send "" for a document's only, unnamed operation.
    return GraphQLRequest(query, name or None, _object(body, "variables"), _object(body, "extensions"))


def _object(body: Mapping[str, Any], member: str) -> dict[str, Any] | None:
    value = body.get(member)
    if not isinstance(value, dict | None):
        raise MalformedRequest(f"`{member}` has to be a JSON object or null.")
    return value
