"""Logs over TLS: hundreds that stay open are followed live by a few threads, and a burst comes whole."""

import asyncio
import contextlib
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.settings import KubeConfig
from starforge.adapters.kube.watch.logs.followers import Followers
from starforge.adapters.kube.watch.logs.loop import FILLERS, OPENERS
from starforge.adapters.kube.watch.messages import Inbox, LinesThere
from starforge.domain.observation import LogSeen
from starforge.domain.ports import Resume
from tests.unit.kube.kube_objects import pod

PODS = 300
BURST = 20_000
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"


def certificate(directory: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 that signs itself, and its key."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = directory / "cert.pem", directory / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem, pkcs8, open_key = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    secret.write_bytes(key.private_bytes(pem, pkcs8, open_key))
    return certificate, secret


@dataclass
class Kubelets:
    """Answers for every log with one line, and stays open; `say` writes to all of them, `end` ends them."""

    ca: Path
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    port: int = 0
    open: list[asyncio.StreamWriter] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            request = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.asked.append(request)
            writer.write(HEAD + chunk(b"2026-11-29T12:00:00Z first\n"))
            self.open.append(writer)

    def say(self, data: bytes, *, end: bool = False) -> None:
        def write() -> None:
            for writer in self.open:
                writer.write(chunk(data) + (b"0\r\n\r\n" if end else b""))

        self.loop.call_soon_threadsafe(write)

    async def close(self) -> None:
        for writer in self.open:
            writer.transport.abort()


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@pytest.fixture
def kubelets(tmp_path: Path) -> Iterator[Kubelets]:
    made, key = certificate(tmp_path)
    kubelets = Kubelets(made)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(made, key)

    async def serve() -> asyncio.Server:
        return await asyncio.start_server(kubelets.answer, "127.0.0.1", 0, ssl=tls, backlog=1000)

    server = kubelets.loop.run_until_complete(serve())
    kubelets.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=kubelets.loop.run_forever)
    thread.start()
    yield kubelets
    asyncio.run_coroutine_threadsafe(kubelets.close(), kubelets.loop).result(10)
    kubelets.loop.call_soon_threadsafe(server.close)
    kubelets.loop.call_soon_threadsafe(kubelets.loop.stop)
    thread.join()
    kubelets.loop.run_until_complete(asyncio.sleep(0.05))
    kubelets.loop.close()


class Followed:
    """Followers of many Pods; `until` takes what they tell until there is enough."""

    def __init__(self, kubelets: Kubelets) -> None:
        self.halted = threading.Event()
        self.inbox = Inbox(self.halted)
        url = f"https://localhost:{kubelets.port}"
        self.api = KubeApi(KubeConfig(namespace="ns", api_server=url, token="secret", ca_file=str(kubelets.ca)))
        self.followers = Followers(self.api, "ns", lambda _run, _source: Resume(None), self.inbox)
        self.told: list[LogSeen] = []

    def until(self, lines: int) -> None:
        while sum(len(each.lines) for each in self.told) < lines:
            message = self.inbox.queue.get(timeout=60)
            assert isinstance(message, LinesThere)
            self.told += self.followers.fetch(message.source)
            while self.followers.has_more(message.source):
                self.told += self.followers.fetch(message.source)

    def texts(self, source: str) -> list[str]:
        return [line.data.decode() for each in self.told if each.source == source for line in each.lines]


@pytest.fixture
def followed(kubelets: Kubelets) -> Iterator[Followed]:
    followed = Followed(kubelets)
    yield followed
    followed.halted.set()
    for thread in followed.followers.halt():
        thread.join(10)
        assert not thread.is_alive()
    followed.api.close()


def test_many_logs_that_stay_open_are_live_with_a_few_threads(kubelets: Kubelets, followed: Followed) -> None:
    for number in range(PODS):
        followed.followers.pod(pod(f"a{number}"))
    followed.until(lines=PODS)
    assert len(kubelets.asked) == PODS, "each is asked for once"
    assert all("follow=true" in request and "Bearer secret" in request for request in kubelets.asked)
    kubelets.say(b"2026-11-29T12:00:01Z second\n")
    followed.until(lines=2 * PODS)
    assert {tuple(followed.texts(f"pod/pod-a{number}/main")) for number in range(PODS)} == {("first", "second")}
    ours = [each.name for each in threading.enumerate() if each.name.startswith("log ")]
    assert len(ours) <= 1 + OPENERS + FILLERS
    assert len(kubelets.asked) == PODS


def test_a_burst_over_tls_comes_whole_and_in_order(kubelets: Kubelets, followed: Followed) -> None:
    followed.followers.pod(pod("a"))
    followed.until(lines=1)
    for start in range(0, BURST, 1000):
        kubelets.say(b"".join(b"2026-11-29T12:00:01Z line %d\n" % number for number in range(start, start + 1000)))
    kubelets.say(b"2026-11-29T12:00:02Z last\n", end=True)
    followed.until(lines=BURST + 2)
    expected = ["first", *(f"line {number}" for number in range(BURST)), "last"]
    assert followed.texts("pod/pod-a/main") == expected
