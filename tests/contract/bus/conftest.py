"""A real Redis for the bus, fresh for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers import RedisServer, redis_server


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[RedisServer]:
    with redis_server(tmp_path) as server:
        yield server
