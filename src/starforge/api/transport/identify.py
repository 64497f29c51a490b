"""Asks who somebody is, with an end to the waiting."""

import asyncio

from starforge.api.transport.callers import Authenticate, CallerT, Credentials
from starforge.api.transport.codes import ErrorCode
from starforge.api.transport.errors import RequestRefused


async def identify(authenticate: Authenticate[CallerT], credentials: Credentials, *, timeout_s: float) -> CallerT:
    """Raises RequestRefused: UNAUTHENTICATED, FORBIDDEN, or another code where nobody can say."""
    try:
        async with asyncio.timeout(timeout_s):
            return await authenticate(credentials)
    except TimeoutError as error:
        sentence = "Your token could not be checked in time: try again."
        raise RequestRefused(ErrorCode.UNAVAILABLE, sentence) from error
    except Exception as error:
        raise RequestRefused.because_of(error) from error
