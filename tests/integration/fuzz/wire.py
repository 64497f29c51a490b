"""HTTP requests byte by byte, whole and broken."""

import json
import socket
from typing import Any

from hypothesis import strategies as st

from tests.integration.fuzz.values import TEXTS, WRONG
from tests.integration.gateway import PATIENCE_S, TOKEN

QUIET_S = 0.3
"""Only how long a request that lacks its end takes depends on it."""

METHODS = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "QUERY", "post", "X"]
PATHS = [
    "/",
    "/graphql/",
    "/graphql/%00",
    "/objects/a%2f..%2f..%2fetc%2fpasswd",
    "/objects/%ff",
    "/objects/",
    "/objects/a?expires=x&signature=%00",
    "/objects/a?expires=99999999999999999999&signature=a",
    "/metrics",
    "/readyz",
    "/livez",
    "//",
    "/%",
    "*",
    "http://x/graphql",
    "/graphql#x",
]
QUERIES = [
    "{ feed { cursor } }",
    "{ jobs(first: 1) { nodes { id } } }",
    "{ __schema { types { name } } }",
    "{",
    "",
    " ",
    "\x00",
    'mutation { retryJob(id: "x") { userErrors { code } } }',
    "subscription { events { cursor } }",
    "query A { feed { at } } query B { feed { at } }",
    "{" * 3000,
    "[" * 50_000,
    "{ a" * 400,
    "# x",
    "fragment F on Query { ...F }",
    '"' * 3,
    "\ud800",
    '{ node(id: "\\ud800") { id } }',
]
TYPES = [
    "application/json; charset=utf-8",
    "application/json; charset=utf-16",
    "text/plain",
    "",
    "application/graphql",
    "multipart/form-data; boundary=x",
    "application/x-www-form-urlencoded",
    "\xff",
    ";;;",
    "application/json;charset",
]
ACCEPTS = [
    "application/json",
    "text/event-stream",
    "text/html",
    "*/*",
    "",
    "a/b",
    "*/*;q=0",
    "\xff",
    "application/json;q=nan",
    "text/html;q=inf",
    "application/json;q=-1",
    ";",
    ",,,",
    "text/event-stream;q=1e999",
    "q=" * 2000,
]
HOSTS = ["[", "]", "[::1", "a:b:c", "\xff", "", "x:99999", "127.0.0.1:80:80", "[::1]:port", "a b", "//x", "@", "?"]
TOKENS = [
    "",
    "Bearer",
    "Bearer ",
    "Basic eDp5",
    "Bearer \xff",
    f"bearer {TOKEN}",
    "Bearer a.b.c",
    "Bearer " + "x" * 5000,
    "Bearer eyJhbGciOiJub25lIn0.e30.",
    "Bearer eyJhbGciOiJSUzI1NiIsImtpZCI6W119.W10.AA",
]
OTHERS = [
    ("sec-fetch-site", "cross-site"),
    ("origin", "null"),
    ("if-none-match", "*"),
    ("if-none-match", "\xff"),
    ("content-encoding", "gzip"),
    ("x-forwarded-for", "\xff"),
    ("range", "bytes=0-1"),
    ("last-event-id", "\x80"),
    ("expect", "100-continue"),
    ("connection", "close"),
    ("upgrade", "websocket"),
    ("upgrade", "h2c"),
    ("cookie", "a=b"),
    ("te", "trailers"),
    ("http2-settings", "AAMAAABkAARAAAAAAAIAAAAA"),
]
BODIES = [
    b"",
    b"null",
    b"[]",
    b"{}",
    b"1",
    b'"x"',
    b"{",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b"\x00",
    b"NaN",
    b'{"query":NaN}',
    b'{"query":"{feed{cursor}}","variables":{"a":1e999}}',
    b'{"query":"\\ud800"}',
    b'{"query":"{feed{cursor}}","variables":{"a":"\\ud800"}}',
    b'{"query":"{a}","query":"{feed{cursor}}"}',
    b'[{"query":"{feed{cursor}}"}]',
    b'{"query":"{feed{cursor}}"}garbage',
    b"9" * 5000,
]


def _mostly(right: st.SearchStrategy[Any], wrong: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 11).flatmap(lambda luck: wrong if luck == 0 else right)


def _member(right: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return _mostly(right, st.sampled_from(WRONG))


def members() -> st.SearchStrategy[dict[str, Any]]:
    """Of a GraphQL request."""
    texts, deep = (
        st.sampled_from(TEXTS),
        st.recursive(st.sampled_from(WRONG), lambda one: st.lists(one, max_size=2), max_leaves=9),
    )
    return st.fixed_dictionaries(
        {"query": _member(_mostly(st.sampled_from(QUERIES[:2]), st.sampled_from(QUERIES)))},
        optional={
            "operationName": _member(_mostly(st.just(""), st.sampled_from(["A", "B"]) | texts)),
            "variables": _member(st.dictionaries(texts, deep, max_size=3)),
            "extensions": _member(st.dictionaries(texts, deep, max_size=3)),
            "documentId": _member(texts),
            "unknown": deep,
        },
    )


def bodies() -> st.SearchStrategy[bytes]:
    whole = members().map(lambda some: json.dumps(some).encode())
    return _mostly(whole, st.sampled_from(BODIES) | st.binary(max_size=50))


def targets() -> st.SearchStrategy[str]:
    def query(some: dict[str, Any]) -> str:
        from urllib.parse import urlencode

        given = {name: value if isinstance(value, str) else json.dumps(value) for name, value in some.items()}
        return urlencode({name: value.encode(errors="surrogatepass") for name, value in given.items()})[:60_000]

    asked = members().map(query) | st.sampled_from(
        ["query=%ff%fe", "query=%", "&&&", "variables=[&query={a}", "query=%00", "=" * 500]
    )
    return st.tuples(_mostly(st.just("/graphql"), st.sampled_from(PATHS)), st.none() | asked).map(
        lambda two: "?".join(part for part in two if part)
    )


def framed(body: bytes) -> st.SearchStrategy[tuple[list[tuple[str, str]], bytes]]:
    """A body with the headers that say where it ends, or that lie about it."""
    right = [("content-length", str(len(body)))]
    chunked = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n" if body else b"0\r\n\r\n"
    chunks, long = [("transfer-encoding", "chunked")], [("content-length", str(len(body) + 10))]
    wrong = [
        (chunks, b"zz\r\n" + body),
        (chunks, b"5\r\nab"),
        ([*right, *chunks], chunked),
        ([*right, *long], body),
        (long, body),
        ([], body),
        *(([("content-length", size)], body) for size in ("-1", "x", "9" * 5000, "99999999")),
    ]
    return _mostly(st.sampled_from([(right, body), (right, body), (chunks, chunked)]), st.sampled_from(wrong))


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    def one(right: str, others: list[str]) -> str:
        return str(draw(_mostly(st.just(right), st.sampled_from(others))))

    headers = [("host", one("127.0.0.1", HOSTS)), ("authorization", one(f"Bearer {TOKEN}", TOKENS))]
    headers += [("content-type", one("application/json", TYPES)), ("connection", "close")]
    headers += [("accept", one("application/graphql-response+json", ACCEPTS))]
    headers += draw(_mostly(st.just([]), st.lists(st.sampled_from(OTHERS), max_size=2)))
    framing, body = draw(bodies().flatmap(framed))
    head = f"{one('POST', METHODS)} {draw(targets())} HTTP/{one('1.1', ['1.0', '9.9', 'x'])}\r\n"
    lines = "".join(f"{name}: {value}\r\n" for name, value in [*headers, *framing])
    whole = (head + lines + "\r\n").encode("latin-1", errors="replace") + body
    return whole if draw(st.integers(0, 29)) else whole[: draw(st.integers(0, len(whole)))]


def exchange(port: int, request: bytes) -> bytes:
    """All that comes back until the server closes. When nothing comes for a while it may wait for the rest of a request
    that has none, so it is told that there is no more; an event stream is left at its first event."""
    got = bytearray()
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as there:
        try:
            there.sendall(request)
            there.settimeout(QUIET_S)
            while not _has_event(got) and (part := _part(there)):
                got += part
        except (ConnectionResetError, BrokenPipeError):
            return bytes(got)  # it had heard enough
    return bytes(got)


def _part(there: socket.socket) -> bytes:
    try:
        return there.recv(65536)
    except TimeoutError:
        there.settimeout(PATIENCE_S)
        there.shutdown(socket.SHUT_WR)
        return there.recv(65536)


def _has_event(got: bytearray) -> bool:
    return b"text/event-stream" in got and b"\n\n" in got.partition(b"\r\n\r\n")[2]
