"""The API server's proxy to the Pod of a playground: whose answer it is, and what is shown to be let through."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.door import kube_door
from starforge.adapters.kube.passing import STATUS_MAX
from starforge.adapters.kube.settings import KubeConfig
from starforge.domain.errors import FleetUnavailable
from starforge.domain.playground_door import Door, ServerRequest
from tests.playground_servers import EVENTS, Heard, Script, scripted
from tests.unit.api.openai_serving import a_playground

pytestmark = pytest.mark.anyio
ASKED = ServerRequest("POST", "chat/completions", "a=1", (("accept", "*/*"),), b'{"x": 1}')
GONE = "error trying to reach service: dial tcp 10.0.0.9:8000: connect: connection refused"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def script() -> Iterator[Script]:
    with scripted() as there:
        yield there


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("first")
    return file


@pytest.fixture
async def door(script: Script, token: Path) -> AsyncIterator[Door]:
    api = KubeApi(KubeConfig(namespace="ns", api_server=script.url, token_file=str(token)))
    async with kube_door(api, "ns") as there:
        yield there


async def ask(door: Door) -> tuple[int, bytes]:
    async with door.ask(a_playground(), ASKED) as answer:
        return answer.status, b"".join([piece async for piece in answer.pieces()])


def says(code: int, message: str) -> bytes:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}
    return json.dumps(status).encode()


async def test_where_it_goes_and_what_is_shown(script: Script, door: Door, token: Path) -> None:
    assert await ask(door) == (200, b"{}")
    [heard] = script.heard
    root = f"/api/v1/namespaces/ns/pods/{a_playground().pod_name}:8000/proxy"
    assert heard.line == f"POST {root}/v1/chat/completions?a=1 HTTP/1.1"
    assert heard.named("authorization") == ["Bearer first"]
    assert heard.body == b'{"x": 1}'
    token.write_text("second")  # noqa: ASYNC240
    await ask(door)
    assert script.heard[1].named("authorization") == ["Bearer second"]


@pytest.mark.parametrize(
    ("status", "message", "sentence"),
    [
        ("503 Service Unavailable", GONE, "does not answer in its Pod \\(dial tcp 10.0.0.9:8000: connect: conn"),
        ("404 Not Found", 'pods "x" not found', "The Pod of the playground is not in the cluster any more"),
        ("403 Forbidden", "pods is forbidden", "Apply deploy/rbac.yaml, so that its account may use pods/proxy."),
        (
            "500 Internal Server Error",
            "etcd is away",
            "did not let StarForge through to the playground: etcd",
        ),
    ],
)
async def test_what_the_api_server_says_becomes_a_sentence(
    script: Script, door: Door, status: str, message: str, sentence: str
) -> None:
    script.answer = lambda heard: heard.whole(says(int(status[:3]), message), status)
    with pytest.raises(FleetUnavailable, match=sentence):
        await ask(door)


@pytest.mark.parametrize(
    "body", [b'{"error": {"message": "no", "code": 404}}', b"[1]", b"{", b"", b'{"kind": "Status"}', b"1" * 100_000]
)
async def test_what_the_server_says_is_left_as_it_is(script: Script, door: Door, body: bytes) -> None:
    script.answer = lambda heard: heard.whole(body, "404 Not Found")
    assert await ask(door) == (404, body)
    assert len(b"1" * 100_000) > STATUS_MAX


async def test_refused_credentials_are_read_again_once(script: Script, door: Door, token: Path) -> None:
    def answer(heard: Heard) -> None:
        if heard.named("authorization") == ["Bearer renewed"]:
            heard.whole(b"{}")
        else:
            token.write_text("renewed")
            heard.whole(says(401, "Unauthorized"), "401 Unauthorized")

    script.answer = answer
    assert await ask(door) == (200, b"{}")
    assert [heard.named("authorization")[0] for heard in script.heard] == ["Bearer first", "Bearer renewed"]
    script.answer = lambda heard: heard.whole(says(401, "Unauthorized"), "401 Unauthorized")
    with pytest.raises(FleetUnavailable, match="Its token is not good any more"):
        await ask(door)


async def test_an_api_server_that_breaks_off(script: Script, door: Door) -> None:
    def answer(heard: Heard) -> None:
        heard.send(EVENTS)
        heard.event(b"{}")
        heard.cut()

    script.answer = answer
    with pytest.raises(FleetUnavailable, match="the way to the playground, broke off in the middle of its answer"):
        await ask(door)


async def test_an_api_server_that_is_away(script: Script, door: Door) -> None:
    script.answer = lambda heard: heard.cut()
    with pytest.raises(FleetUnavailable, match="which is the way to the playground, gave no answer"):
        await ask(door)


async def test_one_that_never_was_there(token: Path) -> None:
    api = KubeApi(KubeConfig(namespace="ns", api_server="http://127.0.0.1:1", token_file=str(token)))
    async with kube_door(api, "ns") as door:
        with pytest.raises(FleetUnavailable, match="can't be reached"):
            await ask(door)
