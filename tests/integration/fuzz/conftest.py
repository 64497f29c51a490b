"""One gateway for the whole run, over jobs that have ended, with nobody at work any more."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from starforge.adapters.wiring import Parts
from starforge.api.schema import make_schema
from tests.contract.store.postgres import running_postgres
from tests.integration.fuzz.documents import Documents
from tests.integration.fuzz.judge import Complaints, complaints
from tests.integration.fuzz.known import Known, known_of
from tests.integration.fuzz.values import Values
from tests.integration.gateway import Gateway, Platform
from tests.servers import redis_server

POINTS = 10**9


@dataclass
class Generous(Platform):
    """Nobody runs out of points; `database` is a URL, or none for a file."""

    database: str | None = None

    def settings(self) -> dict[str, str]:
        return super().settings() | ({"FORGE_DATABASE_URL": self.database} if self.database else {})

    def parts(self) -> Parts:
        parts = super().parts()
        update = {"rate_limit_points": POINTS, "rate_limit_per_second": POINTS}
        return replace(parts, settings=parts.settings.model_copy(update=update))


@contextmanager
def generous_gateway(directory: Path, database: str | None) -> Iterator[tuple[Generous, Gateway]]:
    with redis_server(directory) as redis:
        there = Generous(directory, redis, directory / "cache", database=database)
        with there.at_work(), there.gateway() as gateway:
            yield there, gateway


@contextmanager
def _database(kind: str) -> Iterator[str | None]:
    """Postgres refuses more than SQLite: a NUL, for one."""
    if kind == "sqlite":
        yield None
        return
    with running_postgres() as url:
        yield url


@pytest.fixture(scope="package", params=["sqlite", "postgres"])
def gateway(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[Gateway, Known]]:
    with _database(request.param) as url, generous_gateway(tmp_path_factory.mktemp("fuzz"), url) as (there, gateway):
        jobs = [gateway.submit(name=f"train-{number}", labels=[{"key": "team", "value": "a"}]) for number in range(3)]
        for job in jobs:
            assert gateway.finished(job)["outcome"] == "SUCCEEDED"
        there.rest()
        yield gateway, known_of(gateway, jobs)


@pytest.fixture(scope="package")
def documents(gateway: tuple[Gateway, Known]) -> Documents:
    return Documents(make_schema()._schema, Values(gateway[1]))


@pytest.fixture(scope="package")
def watched() -> Iterator[Complaints]:
    with complaints() as handler:
        yield handler
