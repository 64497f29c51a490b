"""A validating webhook on this machine that denies, or that answers too late."""

import json
import ssl
import threading
from base64 import b64encode
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

NAME = "starforge-faults"
DENIAL = "GPU quotas are being reviewed: no new jobs today"
TIMEOUT_S = 5


class Webhook:
    """Listens on `address` with the API server's certificate; a `silent` one answers after everybody has left."""

    def __init__(self, address: str, pki: Path, *, silent: bool) -> None:
        self._gone = threading.Event()
        self._address, self._ca = address, pki / "ca.crt"
        self._server = ThreadingHTTPServer((address, 0), _handler(self._gone, silent=silent))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki / "server.crt", pki / "server.key")
        # The handshake is made by the thread of the connection, so that one that hangs holds nobody up.
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self._server.serve_forever, name="webhook", daemon=True).start()

    def configuration(self, namespace: str, group: str, version: str, resource: str) -> dict[str, Any]:
        """What makes the API server ask before anything of this kind is created in the namespace."""
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": NAME},
            "webhooks": [
                {
                    "name": "faults.starforge.io",
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "failurePolicy": "Fail",
                    "timeoutSeconds": TIMEOUT_S,
                    "clientConfig": {
                        "url": f"https://{self._address}:{self._server.server_address[1]}/",
                        "caBundle": b64encode(self._ca.read_bytes()).decode(),
                    },
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
                    "rules": [
                        {
                            "apiGroups": [group],
                            "apiVersions": [version],
                            "operations": ["CREATE"],
                            "resources": [resource],
                        }
                    ],
                }
            ],
        }

    def stop(self) -> None:
        self._gone.set()
        self._server.shutdown()
        self._server.server_close()


def answer(review: dict[str, Any]) -> dict[str, Any]:
    """The refusal of an AdmissionReview."""
    denied = {"uid": review["request"]["uid"], "allowed": False, "status": {"code": 403, "message": DENIAL}}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": denied}


def _handler(gone: threading.Event, *, silent: bool) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if silent:
                gone.wait(3 * TIMEOUT_S)
                return
            told = json.dumps(answer(json.loads(body))).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, *_: Any) -> None:
            """Nobody reads it."""

    return Handler


__all__: Sequence[str] = ["DENIAL", "NAME", "Webhook", "answer"]
