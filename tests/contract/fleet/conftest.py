"""The adapters of Fleet that the contract is tried on. To plug one in, add its context manager to PLUGS."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.contract.fleet.local import local
from tests.contract.fleet.plug import FleetUnderTest
from tests.contract.fleet.simulated import simulated

PLUGS: dict[str, Callable[[Path], AbstractContextManager[FleetUnderTest]]] = {
    "simulated": simulated,
    "local": local,
}


@pytest.fixture(params=PLUGS)
def under_test(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FleetUnderTest]:
    with PLUGS[request.param](tmp_path) as plugged:
        yield plugged
