"""An image registry on this machine that has no image at all. Container runtimes speak plain HTTP to localhost."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PORT = 15999
MISSING_IMAGE = f"localhost:{PORT}/no-such-image:1"
UNKNOWN = b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}'


class EmptyRegistry:
    """Says of every image that it is not known; OSError if its port is taken."""

    def __init__(self, port: int = PORT) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, name="registry", daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(200 if self.path == "/v2/" else 404)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(UNKNOWN)))
        self.end_headers()

    def do_GET(self) -> None:
        self.do_HEAD()
        self.wfile.write(UNKNOWN)

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""
