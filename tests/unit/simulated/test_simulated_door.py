"""The canned server of simulated playgrounds answers as vLLM would."""

import json
from typing import Any

import pytest

from starforge.adapters.simulated.door import WORDS, simulated_door
from starforge.domain.errors import FleetUnavailable
from starforge.domain.playground_door import ServerRequest
from tests.unit.api.openai_serving import a_playground

pytestmark = pytest.mark.anyio
CHAT = "chat/completions"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def ask(path: str, method: str = "POST", **body: Any) -> tuple[int, str]:
    request = ServerRequest(method, path, body=json.dumps(body).encode())
    async with simulated_door(lambda _: True, word_s=0) as door, door.ask(a_playground(), request) as answer:
        return answer.status, b"".join([piece async for piece in answer.pieces()]).decode()


async def test_whole_answers() -> None:
    status, text = await ask(CHAT, messages=[])
    answer = json.loads(text)
    assert status == 200
    assert answer["choices"][0]["message"]["content"] == " ".join(WORDS)
    assert answer["usage"]["completion_tokens"] == len(WORDS)
    assert json.loads((await ask("completions", prompt="x"))[1])["choices"][0]["text"] == " ".join(WORDS)
    assert json.loads((await ask("models", "GET"))[1])["data"][0]["id"] == "org/model"


@pytest.mark.parametrize("usage", [True, False])
async def test_a_stream(usage: bool) -> None:
    _, text = await ask(CHAT, stream=True, stream_options={"include_usage": usage})
    *events, done = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    told = [json.loads(event) for event in events]
    assert done == "[DONE]"
    assert "".join(one["choices"][0]["delta"]["content"] for one in told if one["choices"]) == " ".join(WORDS)
    assert [bool(one.get("usage")) for one in told].count(True) == int(usage)


async def test_what_it_has_not() -> None:
    assert (await ask("embeddings"))[0] == 404
    request = ServerRequest("POST", CHAT, body=b"[")
    async with simulated_door(lambda _: True) as door, door.ask(a_playground(), request) as answer:
        assert answer.status == 400
    async with simulated_door(lambda _: False) as door:
        with pytest.raises(FleetUnavailable, match="does not run any more"):
            async with door.ask(a_playground(), request):
                pass
