"""An issuer of OpenID Connect: a real HTTP server with real keys, that can rotate them, lie, and fall silent."""

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from starforge.adapters.oidc.algorithms import Signatures

Json = dict[str, Any]
Key = RSAKey | ECKey | OKPKey | OctKey
AUDIENCE = "starforge"
DISCOVERY = "/.well-known/openid-configuration"
PATIENCE_S = 60


def a_key(algorithm: str, kid: str) -> Key:
    """A new private key for an algorithm."""
    named: Any = {"kid": kid, "use": "sig"}
    if algorithm == "RS256":
        return RSAKey.generate_key(2048, named)
    if algorithm == "ES256":
        return ECKey.generate_key("P-256", named)
    return OKPKey.generate_key("Ed25519", named)


class IssuerServer:
    """`pages` are what it answers by path, dicts as JSON; `asked` counts requests. `hang` is set to let it answer."""

    def __init__(self) -> None:
        self.pages: dict[str, Json | bytes | int] = {}
        self.asked: list[str] = []
        self.hang = threading.Event()
        self.hang.set()
        self.reached = threading.Event()
        self._server: ThreadingHTTPServer | None = None
        self.port = 0
        self.start()
        self.publish(a_key("RS256", "one"))

    def start(self) -> None:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                issuer.reached.set()
                issuer.hang.wait(PATIENCE_S)
                with suppress(OSError):
                    issuer.answer(self)

            def log_message(self, *_: object) -> None: ...

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def server_bind(self) -> None:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                super().server_bind()

        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), name="issuer").start()

    def stop(self) -> None:
        if self._server:
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def publish(self, *keys: Key | Json) -> None:
        """Show these keys, and no others."""
        shown = [key if isinstance(key, dict) else key.as_dict(private=False) for key in keys]
        self.signing = next((key for key in keys if not isinstance(key, dict)), None)
        self.pages["/keys"] = {"keys": shown}
        self.pages[DISCOVERY] = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        page = self.pages.get(request.path, 404)
        body = b"" if isinstance(page, int) else page if isinstance(page, bytes) else json.dumps(page).encode()
        request.send_response(page if isinstance(page, int) else 200)
        request.send_header("location", f"{self.url}/keys")
        request.send_header("content-length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)

    def sign(self, key: Key | None = None, *, header: Json | None = None, **claims: Any) -> str:
        """A token; a claim or a header that is given as None is left out."""
        signer = key or self.signing
        assert signer is not None
        now = int(time.time())
        usual = {"iss": self.url, "aud": AUDIENCE, "sub": "ann", "iat": now, "exp": now + 600, "roles": ["SUBMITTER"],
                 "projects": ["vision"]}  # fmt: skip
        algorithm = {"RSA": "RS256", "EC": "ES256", "OKP": "EdDSA", "oct": "HS256"}[signer.key_type]
        told = {"alg": algorithm, "kid": signer.kid} | (header or {})
        return jwt.encode(_given(told), _given(usual | claims), signer, registry=AnySignature())


class AnySignature(Signatures):
    """Signs by whatever the header says, as an attacker can."""

    def get_alg(self, name: str) -> Any:
        return self.algorithms[name]


def _given(values: Json) -> Json:
    return {name: value for name, value in values.items() if value is not None}


@contextmanager
def issuer_server() -> Iterator[IssuerServer]:
    server = IssuerServer()
    try:
        yield server
    finally:
        server.hang.set()
        server.stop()
