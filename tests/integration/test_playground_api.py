"""A whole gateway in front of a server that does what a script says: streams, silences, breaks and limits."""

import json
import threading
from collections.abc import Iterator

import httpx
import openai
import pytest

from starforge.adapters.wiring import now
from starforge.api import app
from starforge.api.playgrounds.openai import OpenAiLimits
from starforge.domain.actions.create_token import create_token
from starforge.domain.rights import Role
from starforge.domain.tokens import TokenDraft
from tests.integration.gateway import TOKEN, Gateway, Platform
from tests.integration.playground_platform import CREATE, a_ready_playground, playground_platform, scripted_fleet, used
from tests.playground_servers import EVENTS, PATIENCE_S, Heard, Script, error_of, scripted

LIMITS = OpenAiLimits(body_bytes=4096, first_byte_s=PATIENCE_S, total_s=PATIENCE_S, requests=3, keep_alive_s=0.05)
CHAT = {"model": "org/tiny", "messages": [{"role": "user", "content": "hi"}], "stream": True}


@pytest.fixture(scope="module")
def script() -> Iterator[Script]:
    with scripted() as there:
        yield there


@pytest.fixture(scope="module")
def platform(script: Script, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with playground_platform(tmp_path_factory.mktemp("scripted"), scripted_fleet(script.url)) as there:
        yield there


@pytest.fixture(scope="module")
def limits() -> Iterator[list[OpenAiLimits]]:
    """The last of it holds for gateways that are made then."""
    holding = [LIMITS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "openai_limits", lambda _: holding[-1])
        yield holding


@pytest.fixture(scope="module")
def gateway(platform: Platform, limits: list[OpenAiLimits]) -> Iterator[Gateway]:
    with platform.gateway() as there:
        yield there


@pytest.fixture(scope="module")
def address(gateway: Gateway) -> str:
    return a_ready_playground(gateway)


@pytest.fixture
def http(address: str) -> Iterator[httpx.Client]:
    headers = {"authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=address, headers=headers, timeout=PATIENCE_S) as client:
        yield client


def lines_of(response: httpx.Response) -> Iterator[str]:
    return (line for line in response.iter_lines() if line)


def test_a_piece_is_there_before_the_next_is_sent(script: Script, http: httpx.Client) -> None:
    seen = threading.Event()

    def answer(heard: Heard) -> None:
        heard.send(EVENTS)
        heard.event(b'{"a": 1}')
        assert seen.wait(PATIENCE_S)
        heard.event(b"[DONE]")
        heard.end()

    script.answer = answer
    with http.stream("POST", "/chat/completions", json=CHAT) as response:
        assert response.headers["content-type"] == "text/event-stream; charset=utf-8"
        lines = (line for line in lines_of(response) if line != ": keep-alive")
        assert next(lines) == 'data: {"a": 1}'
        seen.set()
        assert list(lines) == ["data: [DONE]"]


def test_a_quiet_stream_is_kept_alive_between_events_alone(script: Script, http: httpx.Client) -> None:
    heard_of = threading.Event()

    def answer(heard: Heard) -> None:
        heard.send(EVENTS)
        heard.chunk(b'data: {"half": ')
        assert heard_of.wait(PATIENCE_S)
        heard.chunk(b"1}\n\ndata: [DONE]\n\n")
        heard.end()

    script.answer = answer
    with http.stream("POST", "/chat/completions", json=CHAT) as response:
        lines = lines_of(response)
        assert [next(lines), next(lines)] == [": keep-alive"] * 2
        heard_of.set()
        assert [line for line in lines if line != ": keep-alive"] == ['data: {"half": 1}', "data: [DONE]"]


def test_a_client_that_goes_away_ends_the_request_to_the_server(
    script: Script, http: httpx.Client, gateway: Gateway, address: str
) -> None:
    ended = threading.Event()

    def answer(heard: Heard) -> None:
        heard.send(EVENTS)
        heard.event(b'{"a": 1}')
        heard.gone()
        ended.set()

    script.answer = answer
    with http.stream("POST", "/chat/completions", json=CHAT) as response:
        next(lines_of(response))
    assert ended.wait(PATIENCE_S)
    assert used(gateway, address, lambda usage: usage["activeRequests"] == 0)["requests"] > 0


def test_so_it_is_before_the_answer_began(script: Script, http: httpx.Client) -> None:
    began, ended = threading.Event(), threading.Event()

    def answer(heard: Heard) -> None:
        began.set()
        heard.gone()
        ended.set()

    script.answer = answer
    with pytest.raises(httpx.ReadTimeout):
        http.post("/chat/completions", json=CHAT, timeout=httpx.Timeout(PATIENCE_S, read=0.5))
    assert began.wait(PATIENCE_S)
    assert ended.wait(PATIENCE_S)


@pytest.mark.parametrize("half", [b"", b'data: {"half'])
def test_a_break_in_the_middle_is_told(script: Script, address: str, half: bytes) -> None:
    def answer(heard: Heard) -> None:
        heard.send(EVENTS)
        heard.event(json.dumps({"choices": [{"index": 0, "delta": {"content": "hello"}}]}).encode())
        if half:
            heard.chunk(half)
        heard.cut()

    script.answer = answer
    with openai.OpenAI(base_url=address, api_key=TOKEN, max_retries=0) as client:
        chunks = client.chat.completions.create(**CHAT)  # type: ignore[call-overload]
        assert next(chunks).choices[0].delta.content == "hello"
        with pytest.raises(openai.APIError, match="broke off in the middle of its answer"):
            next(chunks)


def test_a_stream_that_ends_too_early_is_told_too(script: Script, http: httpx.Client) -> None:
    def answer(heard: Heard) -> None:
        heard.send(EVENTS)
        heard.event(b'{"a": 1}')
        heard.end()

    script.answer = answer
    with http.stream("POST", "/chat/completions", json=CHAT) as response:
        last = list(lines_of(response))[-1]
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "broken_off"


def test_a_body_that_breaks_off_is_no_whole_answer(script: Script, http: httpx.Client) -> None:
    def answer(heard: Heard) -> None:
        heard.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        heard.cut()

    script.answer = answer
    with pytest.raises(httpx.RemoteProtocolError):
        http.get("/models")


def test_nobody_there(script: Script, http: httpx.Client) -> None:
    script.answer = lambda heard: heard.cut()
    answer = http.get("/models")
    assert answer.status_code == 503
    assert error_of(answer)["message"].startswith("The server gave no answer")


def test_pages_and_other_places_do_not_reach_the_client(script: Script, http: httpx.Client) -> None:
    given = {"content_type": "text/html", "Set_Cookie": "a=b", "Location": "/x", "X_Request_Id": "r1", "Server": "x"}
    script.answer = lambda heard: heard.whole(b"<script>", **given)
    answer = http.get("/models")
    assert set(answer.headers) == {
        "cache-control", "content-length", "content-security-policy", "content-type", "date", "server",
        "x-accel-buffering", "x-content-type-options", "x-request-id",
    }  # fmt: skip
    assert (answer.headers["content-type"], answer.headers["server"]) == ("application/octet-stream", "uvicorn")
    script.answer = lambda heard: heard.whole(b"", "302 Found", Location="http://evil.example/")
    answer = http.get("/models")
    assert (answer.status_code, error_of(answer)["code"]) == (502, "bad_answer")
    assert "location" not in answer.headers


def test_too_many_at_once(script: Script, http: httpx.Client, address: str) -> None:
    go, began = threading.Event(), threading.Semaphore(0)

    def answer(heard: Heard) -> None:
        began.release()
        assert go.wait(PATIENCE_S)
        heard.whole(b"{}")

    script.answer = answer
    statuses = list[int]()
    asking = [threading.Thread(target=lambda: statuses.append(http.get("/models").status_code)) for _ in range(3)]
    for thread in asking:
        thread.start()
    for _ in asking:
        assert began.acquire(timeout=PATIENCE_S)
    refused = http.get("/models")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert error_of(refused)["type"] == "rate_limit_error"
    go.set()
    for thread in asking:
        thread.join(PATIENCE_S)
    assert statuses == [200] * 3
    assert http.get("/models").status_code == 200


def test_a_large_body(http: httpx.Client) -> None:
    answer = http.post("/chat/completions", content=b"x" * 5000)
    assert (answer.status_code, error_of(answer)["code"]) == (413, "body_too_large")


def test_times_that_are_over(
    script: Script, platform: Platform, limits: list[OpenAiLimits], address: str, gateway: Gateway
) -> None:
    def quiet(heard: Heard) -> None:
        heard.send(EVENTS)
        heard.event(b'{"a": 1}')
        heard.gone()

    limits.append(OpenAiLimits(first_byte_s=0.5, total_s=2))
    with platform.gateway() as other, httpx.Client(headers={"authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
        there = address.replace(str(gateway.port), str(other.port))
        script.answer = lambda heard: heard.gone()
        answer = client.get(f"{there}/models")
        assert (answer.status_code, error_of(answer)["code"]) == (504, "took_too_long")
        assert "did not begin" in error_of(answer)["message"]
        script.answer = quiet
        with client.stream("POST", f"{there}/chat/completions", json=CHAT) as response:
            last = list(lines_of(response))[-1]
        assert "longer than 2 seconds" in json.loads(last.removeprefix("data: "))["error"]["message"]
    limits.pop()


def test_a_gateway_that_ends_says_so(script: Script, platform: Platform, gateway: Gateway, address: str) -> None:
    def quiet(heard: Heard) -> None:
        heard.send(EVENTS)
        heard.event(b'{"a": 1}')
        heard.gone()

    def end(other: Gateway) -> None:
        other.desk.grace_over = other.loop.time() + 2.5
        other.desk.draining.set()

    script.answer = quiet
    with platform.gateway() as other, httpx.Client(headers={"authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
        there = address.replace(str(gateway.port), str(other.port))
        with client.stream("POST", f"{there}/chat/completions", json=CHAT) as response:
            lines = lines_of(response)
            assert next(lines) == 'data: {"a": 1}'
            other.loop.call_soon_threadsafe(end, other)
            last = list(lines)[-1]
    assert json.loads(last.removeprefix("data: "))["error"]["code"] == "gateway_ends"


def test_who_may_ask(script: Script, gateway: Gateway, address: str) -> None:
    script.answer = lambda heard: heard.whole(b"{}")
    tokens = {
        role: a_token(gateway, Role[role], project)
        for role, project in (("VIEWER", "default"), ("SUBMITTER", "default"), ("ADMIN", "other"))
    }
    stranger = a_token(gateway, Role.SUBMITTER, "other")

    def asked(token: str, path: str = address) -> httpx.Response:
        return httpx.get(f"{path}/models", headers={"authorization": f"Bearer {token}"})

    assert asked(tokens["SUBMITTER"]).status_code == 200
    assert (asked(tokens["VIEWER"]).status_code, error_of(asked(tokens["VIEWER"]))["type"]) == (403, "permission_error")
    missing = address.rpartition("/playgrounds/")[0] + "/playgrounds/play-none/v1"
    one, other = asked(stranger), asked(stranger, missing)
    assert one.status_code == other.status_code == 404
    id_ = address.split("/")[-2]
    assert one.text.replace(id_, "play-none") == other.text
    nobody = httpx.get(f"{address}/models")
    assert (nobody.status_code, nobody.headers["www-authenticate"]) == (401, 'Bearer realm="starforge"')
    assert error_of(nobody)["type"] == "authentication_error"


def a_token(gateway: Gateway, role: Role, project: str) -> str:
    store, random = gateway.parts.ports.store, gateway.parts.ports.random
    projects = None if role is Role.ADMIN else (project,)
    _, shown = create_token(store, TokenDraft(f"{role} of {project}", role, projects), at=now(), random=random)
    return shown.text


def test_one_that_has_ended(gateway: Gateway) -> None:
    address = a_ready_playground(gateway)
    id_ = address.split("/")[-2]
    gateway.ask("mutation($id: ID!) { stopPlayground(id: $id) { playground { id } } }", id=id_)
    with gateway.live("subscription($id: ID!) { playground(id: $id) { playground { ended } } }", id=id_) as live:
        live.until(lambda step: bool((step["playground"] or {}).get("ended")))
    answer = httpx.get(f"{address}/models", headers={"authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, error_of(answer)["code"]) == (409, "playground_ended")
    assert "is STOPPED and answers no more" in error_of(answer)["message"]


def test_one_that_starts(gateway: Gateway) -> None:
    asked = {"name": "chat", "model": "org/tiny", "series": "h200", "gpus": 1}
    for number in range(200):  # more than the simulated cluster has room for
        id_ = gateway.ask(CREATE, input=asked | {"name": f"n{number}"})["createPlayground"]["playground"]["id"]
        answer = httpx.get(
            f"http://127.0.0.1:{gateway.port}/playgrounds/{id_}/v1/models", headers={"authorization": f"Bearer {TOKEN}"}
        )
        if answer.status_code == 503:
            break
    assert error_of(answer)["code"] == "playground_starting"
    assert answer.headers["retry-after"] == "5"
