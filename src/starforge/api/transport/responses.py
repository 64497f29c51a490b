"""Responses of HTTP, as this transport makes them."""

from starlette.responses import Response

from starforge.api.transport.codes import REQUEST_ERRORS
from starforge.api.transport.encoding import encode_json
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.negotiation import MediaType


def refusal(refused: RequestRefused, media: MediaType) -> Response:
    """Its status; to a client of `application/json` alone, 200 if the request was well formed."""
    lenient = media is MediaType.JSON and refused.code in REQUEST_ERRORS
    response = reply(200 if lenient else refused.status, encode_json(refused.body()), media)
    response.headers.update(refused.headers)
    if refused.status == 401:
        response.headers["www-authenticate"] = 'Bearer realm="starforge"'
    return response


def reply(status: int, body: bytes | str, media: MediaType) -> Response:
    headers = {"content-type": f"{media}; charset=utf-8", "cache-control": "no-store", "vary": "accept"}
    return Response(body, status, headers)
