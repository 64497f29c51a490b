"""The adapters of ObjectStore that the contract is tried on, each with a way to make its signed requests."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from starforge.adapters.objects import DirectoryObjects, S3Connection, S3Objects
from starforge.adapters.objects.s3_client import open_client
from starforge.domain.ports import ObjectStore
from tests.contract.objects.gateway import Clock, gateway
from tests.servers import S3Server, s3_server


class Bucket:
    """A bucket of its own on an S3 server, empty for each test."""

    def __init__(self, server: S3Server) -> None:
        self.name = f"starforge-test-{secrets.token_hex(6)}"
        connection = S3Connection(server.endpoint, self.name, server.access_key, server.secret_key)
        self._client = open_client(connection, server.endpoint)
        self.store = S3Objects(connection)
        self.store.prepare()

    def empty(self) -> None:
        for found in self._client.list_objects_v2(Bucket=self.name).get("Contents", []):
            self._client.delete_object(Bucket=self.name, Key=found["Key"])

    def remove(self) -> None:
        self.empty()
        self._client.delete_bucket(Bucket=self.name)


@contextmanager
def _bucket(server: S3Server) -> Iterator[Bucket]:
    bucket = Bucket(server)
    try:
        yield bucket
    finally:
        bucket.remove()


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("moto") / "log") as server:
        yield server


@pytest.fixture(scope="session")
def moto_bucket(moto: S3Server) -> Iterator[Bucket]:
    with _bucket(moto) as bucket:
        yield bucket


@pytest.fixture(scope="session")
def cluster_bucket() -> Iterator[Bucket]:
    endpoint = os.environ.get("S3_HTTP_ENDPOINT")
    if not endpoint:
        tell = pytest.fail if os.environ.get("CI_CLUSTER") == "1" else pytest.skip
        tell("no S3_HTTP_ENDPOINT: the object store of a cluster is not there to try")
    with _bucket(S3Server(endpoint, os.environ["S3_ACCESS_KEY"], os.environ["S3_SECRET_KEY"])) as bucket:
        yield bucket


@pytest.fixture
def clock() -> Clock:
    return Clock(datetime(2030, 1, 1, tzinfo=UTC))


@pytest.fixture
def directory(tmp_path: Path, clock: Clock) -> Iterator[DirectoryObjects]:
    with gateway() as (base_url, serve):
        store = DirectoryObjects(tmp_path / "objects", base_url, now=clock)
        store.prepare()
        serve(store)
        yield store


def _store(name: str, request: pytest.FixtureRequest) -> ObjectStore:
    if name == "directory":
        directory: DirectoryObjects = request.getfixturevalue("directory")
        return directory
    bucket: Bucket = request.getfixturevalue(f"{name}_bucket")
    bucket.empty()
    return bucket.store


_CLUSTER = pytest.param("cluster", marks=pytest.mark.cluster)


@pytest.fixture(params=["directory", "moto", _CLUSTER])
def store(request: pytest.FixtureRequest) -> ObjectStore:
    """Any object store."""
    return _store(request.param, request)


@pytest.fixture(params=["directory", _CLUSTER])
def checking(request: pytest.FixtureRequest) -> ObjectStore:
    """An object store that checks signatures, which moto's does not."""
    return _store(request.param, request)
