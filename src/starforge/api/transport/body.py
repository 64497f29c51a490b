"""Reads the GraphQL request out of an HTTP request."""

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.requests import ClientDisconnect, Request

from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.encoding import NotJson, decode_json
from starforge.api.transport.errors import RequestRefused
from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.request import GraphQLRequest, MalformedRequest, read_request

PREFLIGHT_HEADERS = ("x-starforge-csrf", "apollo-require-preflight", "authorization")
"""A page of another site can send none of these without asking us first (a CORS preflight)."""


async def read_post(request: Request, limits: TransportLimits) -> GraphQLRequest:
    """Raises RequestRefused."""
    _demand_json(request.headers.get("content-type", ""))
    return _read(_decode(await _whole_body(request, limits), "The body"))


def read_get(request: Request) -> GraphQLRequest:
    """Raises RequestRefused, also if a page of another site may have made a browser send it."""
    _demand_own_site(request)
    parameters: dict[str, Any] = dict(request.query_params)
    for name in ("variables", "extensions"):
        if parameters.get(name):
            parameters[name] = _decode(parameters[name], f"The parameter `{name}`")
        else:
            parameters.pop(name, None)
    return _read(parameters)


def late_body(limits: TransportLimits) -> RequestRefused:
    """For a client that does not send what it announced."""
    sentence = f"The body did not come within {limits.body_timeout_s:g} seconds."
    return RequestRefused(ErrorCode.BAD_REQUEST, sentence, status=408)


def _demand_json(content_type: str) -> None:
    media_type, *parameters = (part.strip().lower() for part in content_type.split(";"))
    charsets = [part.partition("=")[2].strip('"') for part in parameters if part.startswith("charset=")]
    if media_type != "application/json" or any(charset not in ("utf-8", "utf8") for charset in charsets):
        sentence = "Send the request as JSON in UTF-8, with `Content-Type: application/json`."
        raise RequestRefused(ErrorCode.BAD_REQUEST, sentence, status=415)


def _demand_own_site(request: Request) -> None:
    site = request.headers.get("sec-fetch-site", "none")
    if site in ("cross-site", "same-site") and not any(name in request.headers for name in PREFLIGHT_HEADERS):
        sentence = "A page of another site has to send the header `x-starforge-csrf` with a GET, with any value."
        raise RequestRefused(ErrorCode.BAD_REQUEST, sentence, status=403)


async def _whole_body(request: Request, limits: TransportLimits) -> bytes:
    declared = request.headers.get("content-length", "0")
    if declared.isdecimal() and int(declared) > limits.body_bytes:
        raise _too_large(limits)
    try:
        async with asyncio.timeout(limits.body_timeout_s):
            return await _read_up_to(request, limits)
    except TimeoutError as error:
        raise late_body(limits) from error
    except ClientDisconnect as error:
        raise RequestRefused(ErrorCode.BAD_REQUEST, "The body was cut off.") from error


async def _read_up_to(request: Request, limits: TransportLimits) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limits.body_bytes:
            raise _too_large(limits)
    return bytes(body)


def _too_large(limits: TransportLimits) -> RequestRefused:
    sentence = f"A request's body may have {limits.body_bytes} bytes: send code by `prepareCode`, or fewer items."
    return RequestRefused(ErrorCode.BAD_REQUEST, sentence, status=413)


def _decode(text: str | bytes, what: str) -> Any:
    try:
        return decode_json(text)
    except NotJson as error:
        raise RequestRefused(ErrorCode.BAD_REQUEST, f"{what} is not JSON, or is nested too deeply.") from error


def _read(members: Mapping[str, Any] | Any) -> GraphQLRequest:
    try:
        return read_request(members)
    except MalformedRequest as error:
        raise RequestRefused(ErrorCode.BAD_REQUEST, str(error)) from error
