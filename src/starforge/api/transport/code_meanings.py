"""What each code means and what a client does about it: the words of docs/reference/errors.md."""

from dataclasses import dataclass

from starforge.api.transport.codes import ErrorCode


@dataclass(frozen=True)
class Meaning:
    """Sentences for a person who writes a client."""

    sentence: str
    """What happened."""
    advice: str
    """What the client should do."""


MEANINGS = {
    ErrorCode.GRAPHQL_PARSE_FAILED: Meaning(
        "The document is not GraphQL.", "Mend the document at `locations`; sending it again does not help."
    ),
    ErrorCode.GRAPHQL_VALIDATION_FAILED: Meaning(
        "The document does not fit the schema.",
        "Mend the document; if it was valid once, look up what changed in schema-changes.md.",
    ),
    ErrorCode.OPERATION_RESOLUTION_FAILURE: Meaning(
        "The operation to run can't be told from the document.", "Name one of its operations in `operationName`."
    ),
    ErrorCode.BAD_USER_INPUT: Meaning(
        "A variable or argument has a value that its type or this field does not allow.",
        "Show `message` to whoever gave the value.",
    ),
    ErrorCode.BAD_REQUEST: Meaning(
        "The HTTP request or frame is malformed.",
        "Mend the client: method, headers or body are not those of GraphQL over HTTP.",
    ),
    ErrorCode.PERSISTED_DOCUMENT_NOT_FOUND: Meaning(
        "There is no persisted document of that id, or only persisted ones are allowed.",
        "Send the document's text, or have the document added to the gateway's manifest.",
    ),
    ErrorCode.UNAUTHENTICATED: Meaning(
        "There is no valid token.", "Get a fresh token and send it; without one, ask the person to sign in."
    ),
    ErrorCode.FORBIDDEN: Meaning(
        "The token's role does not allow this.",
        "Hide what `allowedActions` does not list, or use a token with the role.",
    ),
    ErrorCode.NOT_FOUND: Meaning(
        "There is no such object to follow that the caller may see.", "Say so; do not try again by yourself."
    ),
    ErrorCode.DOCUMENT_TOO_EXPENSIVE: Meaning(
        "The document is too deep, has too many aliases or tokens, or costs too much.",
        "Ask for less at a time: smaller pages, fewer fields, several requests.",
    ),
    ErrorCode.THROTTLED: Meaning(
        "The budget is spent: wait `retryAfterSeconds`.", "Send the same request after `retryAfterSeconds`."
    ),
    ErrorCode.TOO_MANY_SUBSCRIPTIONS: Meaning(
        "Too many connections or subscriptions at the same time.",
        "End subscriptions that nobody looks at, then try again; share one socket between the parts of a page.",
    ),
    ErrorCode.SNAPSHOT_TOO_LARGE: Meaning(
        "More jobs match than a snapshot may hold: query a page and subscribe after its feed cursor.",
        "Query a page that also asks `feed { cursor }` and subscribe with that cursor as `after`.",
    ),
    ErrorCode.CURSOR_EXPIRED: Meaning(
        "The cursor is too old: query again and subscribe after the new feed cursor.",
        "Drop what is shown, query again and subscribe after the new `feed { cursor }`.",
    ),
    ErrorCode.CURSOR_INVALID: Meaning(
        "The cursor is not one of ours or not of this subscription.",
        "A defect of the client, or the gateway's database was set back: query again.",
    ),
    ErrorCode.SLOW_CONSUMER: Meaning(
        "The reader was too slow for a stream that may not skip: resume from `extensions.cursor`.",
        "Subscribe again with `extensions.cursor` as `after`, and do less for each step.",
    ),
    ErrorCode.UNAVAILABLE: Meaning(
        "This gateway sheds load or is going away: retry.",
        "Send the same request again, after `retryAfterSeconds` if it is there, else with growing pauses.",
    ),
    ErrorCode.TIMEOUT: Meaning(
        "It took too long and was given up; a mutation may still have been done, so repeat it with its key.",
        "Send a query again; send a mutation again with the same idempotency key.",
    ),
    ErrorCode.INTERNAL_SERVER_ERROR: Meaning(
        "A defect of StarForge: quote the `id`.", "Show `message`, which has the id; try again only if `retryable`."
    ),
}
