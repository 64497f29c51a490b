"""A real issuer for each test."""

from collections.abc import Iterator

import pytest

from tests.contract.identities.issuer_server import IssuerServer, issuer_server


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def server() -> Iterator[IssuerServer]:
    with issuer_server() as there:
        yield there
