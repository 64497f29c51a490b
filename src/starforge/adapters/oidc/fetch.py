"""Gets a small JSON document of the issuer, within limits of time and size."""

import asyncio
import json
import ssl
from typing import Any

import httpx

from starforge.domain.errors import IssuerUnavailable

TIMEOUT_S = 5.0
"""For a whole answer, however slowly it comes."""
BYTES_MAX = 256 * 1024


async def fetch_json(url: str, trust: ssl.SSLContext) -> dict[str, Any]:
    """The JSON object at an address; IssuerUnavailable if there is none to be had. Redirects are not followed."""
    try:
        async with asyncio.timeout(TIMEOUT_S), httpx.AsyncClient(verify=trust, timeout=TIMEOUT_S) as client:
            body = await _body(client, url)
        found = json.loads(body)
    except TimeoutError as error:
        raise _unavailable(url, f"did not answer within {TIMEOUT_S:.0f} s") from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _unavailable(url, f"can't be reached ({type(error).__name__})") from error
    except ValueError as error:
        raise _unavailable(url, "did not answer with JSON") from error
    if not isinstance(found, dict):
        raise _unavailable(url, "did not answer with a JSON object")
    return found


async def _body(client: httpx.AsyncClient, url: str) -> bytes:
    body = bytearray()
    async with client.stream("GET", url, headers={"accept": "application/json"}) as answer:
        if answer.status_code != httpx.codes.OK:
            raise _unavailable(url, f"answered with status {answer.status_code}")
        async for chunk in answer.aiter_bytes():
            body += chunk
            if len(body) > BYTES_MAX:
                raise _unavailable(url, f"answered with more than {BYTES_MAX // 1024} KiB")
    return bytes(body)


def _unavailable(url: str, why: str) -> IssuerUnavailable:
    return IssuerUnavailable(f"The issuer of your token {why} at {url}; try again in a minute.")
