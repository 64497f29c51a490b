"""The official client of the OpenAI API, unchanged, with a server that really streams behind a whole gateway."""

import re
from collections.abc import Iterator

import openai
import pytest
from typer.testing import CliRunner

from starforge.cli.main import app
from tests.integration.gateway import TOKEN, Gateway
from tests.integration.playground_platform import a_ready_playground, playground_platform, tiny_fleet, used

PLAYGROUND = re.compile(r"play-[0-9a-f]{20}")
WORDS = "one two three four five"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("client")
    with playground_platform(folder, tiny_fleet("--tokens-per-second", "200")) as platform, platform.gateway() as there:
        yield there


@pytest.fixture(scope="module")
def address(gateway: Gateway) -> Iterator[str]:
    address = a_ready_playground(gateway)
    yield address
    stop(gateway, address.split("/")[-2])


def stop(gateway: Gateway, id_: str) -> None:
    """Return when nothing of it is left."""
    gateway.ask("mutation($id: ID!) { stopPlayground(id: $id) { playground { id } } }", id=id_)
    query = "subscription($id: ID!) { playground(id: $id) { playground { releasedAt } } }"
    with gateway.live(query, id=id_) as live:
        live.until(lambda step: bool((step["playground"] or {}).get("releasedAt")))


@pytest.fixture
def client(address: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=address, api_key=TOKEN, max_retries=0) as made:
        yield made


def test_models(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["org/tiny"]


def test_a_chat(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="org/tiny", messages=[{"role": "user", "content": WORDS}])
    assert answer.choices[0].message.content == WORDS
    assert answer.usage is not None
    assert answer.usage.completion_tokens == 5


def test_a_stream_is_counted(client: openai.OpenAI, gateway: Gateway, address: str) -> None:
    before = used(gateway, address, lambda usage: usage["activeRequests"] == 0)
    chunks = client.chat.completions.create(
        model="org/tiny",
        messages=[{"role": "user", "content": WORDS}],
        stream=True,
        stream_options={"include_usage": True},
    )
    parts = [chunk.choices[0].delta.content for chunk in chunks if chunk.choices]
    assert parts == ["one", " two", " three", " four", " five"]
    wanted = before["requests"] + 1
    after = used(gateway, address, lambda usage: usage["requests"] >= wanted and not usage["activeRequests"])
    assert after["completionTokens"] >= before["completionTokens"] + 5
    assert after["promptTokens"] >= before["promptTokens"] + 5
    assert 0 < after["firstTokenSeconds"] < 60
    assert after["lastUsedAt"] is not None


def test_a_completion(client: openai.OpenAI) -> None:
    answer = client.completions.create(model="org/tiny", prompt=WORDS, max_tokens=2)
    assert (answer.choices[0].text, answer.choices[0].finish_reason) == ("one two", "length")


def test_what_the_server_refuses_is_its_own_word(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="The model `other` does not exist"):
        client.chat.completions.create(model="other", messages=[{"role": "user", "content": WORDS}])


def test_a_token_is_needed(address: str) -> None:
    with (
        openai.OpenAI(base_url=address, api_key="nobody's", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError, match="The token is not known here"),
    ):
        client.models.list()


def test_the_log_of_the_server_tells_of_a_client_that_went_away(
    client: openai.OpenAI, gateway: Gateway, address: str
) -> None:
    chunks = client.chat.completions.create(
        model="org/tiny",
        messages=[{"role": "user", "content": "word"}],
        max_tokens=100_000,
        extra_body={"ignore_eos": True},
        stream=True,
    )
    next(iter(chunks))
    chunks.close()
    logs = "subscription($id: ID!) { playgroundLogs(id: $id) { lines { text } } }"
    with gateway.live(logs, id=address.split("/")[-2]) as live:
        live.until(lambda chunk: any("a client went away" in line["text"] for line in chunk["lines"]))


def test_the_command_line(gateway: Gateway, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGE_URL", f"http://127.0.0.1:{gateway.port}")
    monkeypatch.setenv("FORGE_TOKEN", TOKEN)
    id_ = address.split("/")[-2]
    said = CliRunner().invoke(app, ["playground", "chat", id_, "--message", WORDS])
    assert (said.exit_code, said.stdout) == (0, f"{WORDS}\n")
    words = ["playground", "create", "--model", "org/other", "--series", "h200", "--ttl", "10m"]
    made = CliRunner().invoke(app, words)
    assert made.exit_code == 0, made.stderr
    other = next(iter(set(PLAYGROUND.findall(made.stdout)) - {id_}))
    listed = CliRunner().invoke(app, ["playground", "list"]).stdout
    assert id_ in listed
    assert other in listed
    assert "lives until" in CliRunner().invoke(app, ["playground", "extend", other, "2h"]).stdout
    stop(gateway, other)
