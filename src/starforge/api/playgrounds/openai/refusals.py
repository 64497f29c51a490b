"""What is wrong, as clients of the OpenAI API read it."""

import json
from collections.abc import Mapping
from http import HTTPStatus

from starlette.responses import Response

from starforge.domain.errors import Forbidden, NotFound, StarForgeError, Unauthenticated

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_AGAIN = frozenset({429, 502, 503})
"""Statuses after which a client may well ask again by itself."""
_STATUSES: Mapping[type[StarForgeError], int] = {Unauthenticated: 401, Forbidden: 403, NotFound: 404}


class Refused(Exception):
    """A request that is not answered by the server of a playground; `message` is a sentence for a person."""

    def __init__(self, status: int, message: str, code: str, **headers: str) -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}

    @property
    def body(self) -> bytes:
        kind = _TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "api_error")
        error = {"message": self.message, "type": kind, "param": None, "code": self.code}
        return json.dumps({"error": error}).encode()

    @property
    def event(self) -> bytes:
        """It as the last event of a stream."""
        return b"data: " + self.body + b"\n\n"

    def response(self) -> Response:
        headers = {"cache-control": "no-store", "x-should-retry": str(self.status in _AGAIN).lower(), **self.headers}
        if self.status == HTTPStatus.UNAUTHORIZED:
            headers["www-authenticate"] = 'Bearer realm="starforge"'
        return Response(self.body, self.status, headers, media_type="application/json")


def refused(error: StarForgeError) -> Refused:
    """An error of our tree as a refusal."""
    status = next((code for kind, code in _STATUSES.items() if isinstance(error, kind)), None)
    again = {"retry_after": f"{error.retry_after_s:.0f}"} if error.retry_after_s else {}
    return Refused(status or (503 if error.retryable else 500), error.message, error.code.lower(), **again)
