"""Tests of the gateway's inside that are coroutines run on asyncio, as the gateway does."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
