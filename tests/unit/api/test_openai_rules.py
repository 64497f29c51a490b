"""Whatever is asked of a playground, what leaves for the cluster goes to its Pod's one port, below /v1."""

import posixpath
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from starforge.domain.playground_door import ServerRequest
from tests.playground_servers import Script, scripted
from tests.unit.api.openai_serving import OUR_TOKEN, THEIR_TOKEN, Proxy, a_playground, request, serving

PASSED = {
    "accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host", "traceparent",
    "tracestate", "user-agent", "x-data-parallel-rank", "x-request-id",
}  # fmt: skip


@pytest.fixture(scope="module")
def proxy() -> Iterator[Proxy]:
    with scripted() as upstream, serving(upstream) as there:
        yield there


def check_all_left_for_the_pod(upstream: Script) -> None:
    root = f"/api/v1/namespaces/ns/pods/{a_playground().pod_name}:8000/proxy/v1/"
    for heard in upstream.heard:
        method, target, version = heard.line.split(" ")
        path, _, query = target.partition("?")
        assert (method in {"GET", "POST"}, version) == (True, "HTTP/1.1")
        assert path.startswith(root)
        assert posixpath.normpath(path) == path
        assert re.fullmatch(r"[A-Za-z0-9._~/-]+", path.removeprefix(root))
        assert re.fullmatch(r"[A-Za-z0-9._~*+%=&-]*", query)
        assert {name for name, _ in heard.headers} <= PASSED
        assert heard.named("host") == [f"127.0.0.1:{upstream.port}"]
        assert heard.named("authorization") == [f"Bearer {OUR_TOKEN}"]
        assert THEIR_TOKEN not in str(heard.headers)
    upstream.heard.clear()


TRICKS = st.sampled_from(
    [
        b"..", b".", b"...", b"%2e%2e", b"%2E.", b"%2f", b"%5c", b"\\", b"/", b"//", b";", b":", b":9000", b"@", b"#",
        b"?", b"&", b"=", b"%00", b"%0d%0a", b"http:", b"https://", b"chat", b"completions", b"v1", b"proxy", b"pods",
        b"..%2f", b"%c0%af", b"~", b"*", b"kube-system", b"\xc3\xa9", b"\xff", b"play-abc123",
    ]
)  # fmt: skip
TEXT = st.binary(max_size=12).map(lambda text: bytes(byte for byte in text if byte > 0x20 and byte != 0x7F))
PATHS = st.lists(st.one_of(TRICKS, TEXT), max_size=8).map(b"".join)
FRONTS = st.sampled_from(
    [
        b"/playgrounds/play-abc123/v1/", b"/playgrounds/play-abc123/v1", b"/playgrounds/play-abc123/", b"/playgrounds/",
        b"/playgrounds/play-abc123%2fv1/", b"http://evil.example/playgrounds/play-abc123/v1/", b"/playgrounds/../v1/",
        b"//evil.example/playgrounds/play-abc123/v1/", b"/playgrounds/play-abc123/v1/../../play-abc123/v1/",
    ]
)  # fmt: skip
NAMES = st.one_of(
    st.sampled_from(
        [
            b"X-Forwarded-For", b"X-Forwarded-Host", b"Impersonate-User", b"Impersonate-Group", b"Impersonate-Extra-x",
            b"Cookie", b"Proxy-Authorization", b"TE", b"Trailer", b"Connection", b"Keep-Alive", b"Forwarded",
            b"X-Remote-User", b"Accept", b"Content-Type", b"X-Request-Id", b"Content-Encoding", b"Authorization",
            b"X-Original-URL",
        ]
    ),
    st.from_regex(rb"\A[A-Za-z][A-Za-z0-9-]{0,20}\Z").filter(
        lambda name: name.lower() not in {b"content-length", b"transfer-encoding", b"upgrade", b"expect", b"host"}
    ),
)  # fmt: skip
VALUES = st.one_of(
    st.sampled_from([b"keep-alive, authorization", b"root", b"gzip", b"close", b"application/json"]), TEXT
)
HEADERS = st.lists(st.tuples(NAMES, VALUES).map(lambda pair: b"%b: %b" % pair), max_size=6)
METHODS = st.sampled_from([b"GET", b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"HEAD", b"CONNECT", b"PURGE"])


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.tuples(FRONTS, PATHS).map(b"".join), METHODS, HEADERS, st.binary(max_size=64))
@example(b"/playgrounds/play-abc123/v1/chat/completions", b"POST", [b"Connection: content-type"], b"{}")
@example(b"/playgrounds/play-abc123/v1/models?a=%2e%2e/%0d%0a&b", b"GET", [], b"")
def test_nothing_ever_leaves_its_pod(
    proxy: Proxy, target: bytes, method: bytes, headers: list[bytes], body: bytes
) -> None:
    proxy.send(request(target, method, body, *headers))
    check_all_left_for_the_pod(proxy.upstream)


@pytest.mark.parametrize(
    "path",
    [
        b"..", b"../../secrets", b"chat/../../x", b"chat/..", b"./models", b"a/./b", b"chat//completions", b"/models",
        b"models/", b"%2e%2e/x", b"a%2fb", b"a;b", b"a:9000/x", b"http://x/", b"a\\b", b"\xc3\xa9", b"", b"a*b", b"a@b",
    ],
)  # fmt: skip
def test_a_path_that_is_not_plain_is_refused(proxy: Proxy, path: bytes) -> None:
    assert proxy.status(request(b"/playgrounds/play-abc123/v1/" + path)) == 400
    assert proxy.upstream.heard == []


@pytest.mark.parametrize(
    ("target", "status"),
    [
        (b"/playgrounds/play-abc123/v1/models", 200),
        (b"/playgrounds/play-abc123/v1/models?limit=3&x=%2F", 200),
        (b"/playgrounds/play-abc123/v1/a...b/~x", 200),
        (b"/playgrounds/play-other/v1/models", 404),
        (b"/playgrounds/play-abc123/v2/models", 404),
        (b"/playgrounds/play-abc123:9000/v1/models", 404),
        (b"/playgrounds/play-abc123%2fv1/models", 404),
        (b"http://forge/playgrounds/play-abc123/v1/models", 400),
        (b"/playgrounds/play-abc123/v1/models?a=%ff", 400),
        (b"/playgrounds/play-abc123/v1/models?" + b"&".join(b"a=1" for _ in range(100)), 400),
    ],
)
def test_where_requests_may_go(proxy: Proxy, target: bytes, status: int) -> None:
    assert proxy.status(request(target, b"GET", b"")) == status
    check_all_left_for_the_pod(proxy.upstream)


@pytest.mark.parametrize("method", [b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"HEAD"])
def test_other_methods_are_refused(proxy: Proxy, method: bytes) -> None:
    answer = proxy.send(request(b"/playgrounds/play-abc123/v1/models", method))
    assert answer.startswith(b"HTTP/1.1 405 ")
    assert b"allow: GET, POST\r\n" in answer
    assert proxy.upstream.heard == []


def test_what_a_server_gets_to_see(proxy: Proxy) -> None:
    given_ = [
        b"Cookie: session=1", b"X-Forwarded-For: 10.0.0.1", b"Impersonate-User: system:admin", b"X-Request-Id: r1",
        b"Accept: text/event-stream", b"Content-Type: application/json", b"User-Agent: OpenAI/Python", b"X-Evil: 1",
        b"Connection: x-request-id",
    ]  # fmt: skip
    proxy.send(request(b"/playgrounds/play-abc123/v1/chat/completions", b"POST", b'{"a": 1}', *given_))
    heard = proxy.upstream.heard[-1]
    seen = {name: value for name, value in heard.headers if name not in {"host", "authorization", "connection"}}
    assert seen == {
        "accept": "text/event-stream", "accept-encoding": "identity", "content-length": "8",
        "content-type": "application/json", "user-agent": "starforge",
    }  # fmt: skip
    assert heard.body == b'{"a": 1}'
    check_all_left_for_the_pod(proxy.upstream)


def test_a_large_body_is_refused(proxy: Proxy) -> None:
    assert proxy.status(request(b"/playgrounds/play-abc123/v1/completions", b"POST", b"x" * 5000)) == 413
    assert proxy.upstream.heard == []


@pytest.mark.parametrize(
    "changed",
    [
        {"method": "DELETE"}, {"path": "../x"}, {"path": "a/../b"}, {"path": "a//b"}, {"path": ""}, {"path": "a\n"},
        {"path": "a" * 600}, {"query": "a b"}, {"query": "a#b"}, {"query": "a" * 9000},
        {"headers": (("a\r\nb", "c"),)}, {"headers": (("a", "b\r\nc: d"),)}, {"headers": (("A", "b"),)},
    ],
)  # fmt: skip
def test_a_request_can_not_be_made_wrong(changed: dict[str, Any]) -> None:
    ServerRequest("GET", "models", "a=1", (("accept", "*/*"),))
    with pytest.raises(ValueError):  # noqa: PT011
        ServerRequest(**{"method": "GET", "path": "models", **changed})
