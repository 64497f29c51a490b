"""The official client, asked for raw JSON: its models are slow, and hide fields that they do not know."""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import config as kube_config
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from urllib3.response import BaseHTTPResponse

from starforge.adapters.kube.dialing import Dialer
from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.settings import KubeConfig

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
CONNECT_S = 5.0
ANSWER_S = 30.0
PAGE = 500
POOLED_CONNECTIONS = 64
# How soon credentials that were refused may be read again: a plugin of a kubeconfig is a program that is run.
RENEW_S = 10.0
_IN_CLUSTER = "KUBERNETES_SERVICE_HOST"  # Kubernetes sets it in every Pod

Query = Mapping[str, str | int]


@dataclass(frozen=True)
class Page:
    """Objects of a list; `adds` tells whether they come on top of the pages before, or in place of them."""

    objects: list[KubeObject]
    version: str
    adds: bool


class KubeApi:
    """Requests to one API server. ApiException for every answer but 2xx, HTTPError of urllib3 when there is none.

    A 401 makes it read the credentials again, whatever they come from, and ask once more.
    """

    def __init__(
        self,
        config: KubeConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        connect_s: float = CONNECT_S,
        answer_s: float = ANSWER_S,
    ) -> None:
        self._config, self._clock = config, clock
        self._connect_s, self._answer_s = connect_s, answer_s
        self._client = ApiClient(_configuration(config))
        self._dialer: Dialer | None = None
        self._renewing = threading.Lock()
        self._renewed_at: float | None = None

    def get(self, path: str, query: Query | None = None, *, accept: str = JSON) -> KubeObject:
        return self._json("GET", path, query=query, accept=accept)

    def post(self, path: str, body: KubeObject | None = None) -> KubeObject:
        return self._json("POST", path, body=body)

    def patch(self, path: str, body: KubeObject) -> KubeObject:
        return self._json("PATCH", path, body=body, content_type=MERGE_PATCH)

    def delete(self, path: str, *, propagation: str = "Background", grace_s: int | None = None) -> None:
        options: KubeObject = {"propagationPolicy": propagation}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        self._json("DELETE", path, body=options)

    def list(self, path: str, query: Query | None = None, *, accept: str = JSON) -> tuple[list[KubeObject], str]:
        """Every object, over as many pages as it takes, and the resource version of the list."""
        found: list[KubeObject] = []
        version = ""
        for page in self.pages(path, query, accept=accept):
            found = [*(found if page.adds else ()), *page.objects]
            version = page.version
        return found, version

    def pages(self, path: str, query: Query | None = None, *, accept: str = JSON) -> Iterator[Page]:
        """The pages of a list. If it grows too old to go on with, all comes in one page that replaces the others."""
        asked, adds = {**(query or {}), "limit": PAGE}, False
        while True:
            try:
                answer = self.get(path, asked, accept=accept)
            except ApiException as error:
                if error.status != 410 or "continue" not in asked:
                    raise
                asked, adds = dict(query or {}), False
                continue
            metadata = answer.get("metadata") or {}
            yield Page(answer.get("items") or [], metadata.get("resourceVersion", ""), adds)
            if not metadata.get("continue"):
                return
            asked, adds = {**(query or {}), "limit": PAGE, "continue": metadata["continue"]}, True

    @property
    def credentials(self) -> object:
        """What requests show right now, to be given to `renew` if it was refused."""
        return self._client

    def renew(self, refused: object) -> bool:
        """Read credentials again that were refused, which may take a while; whether it is worth asking once more."""
        return self._renewed(refused) is not None

    def dial(self, path: str, query: Query) -> socket.socket:
        """A socket that does not block, on which a GET was sent; OSError or HTTPError if that fails.

        Whoever reads a 401 from it calls `renew`.
        """
        client = self._client
        if self._dialer is None or self._dialer.configuration is not client.configuration:
            self._dialer = Dialer(client.configuration)
        _, url, headers, *_ = client.param_serialize(
            "GET",
            path,
            query_params=list(query.items()),
            header_params={"Accept": JSON},
            auth_settings=["BearerToken"],
        )
        return self._dialer.dial(url, headers, timeout_s=self._connect_s)

    @contextmanager
    def stream(self, path: str, query: Query, *, quiet_s: float) -> Iterator[BaseHTTPResponse]:
        """An answer that is read as it comes; `quiet_s` is the longest silence that it may have."""
        response = self._send("GET", path, query=query, read_s=quiet_s)
        try:
            yield response
        finally:
            response.close()

    def close(self) -> None:
        self._client.rest_client.close()

    def _json(self, method: str, path: str, **request: Any) -> KubeObject:
        response = self._send(method, path, **request)
        try:
            answer = json.loads(response.read() or b"{}")
        except ValueError as error:
            raise ApiException(status=0, reason=f"{path} answered with something that is not JSON") from error
        finally:
            response.release_conn()
        return answer if isinstance(answer, dict) else {"value": answer}

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: KubeObject | None = None,
        content_type: str = JSON,
        accept: str = JSON,
        read_s: float | None = None,
    ) -> BaseHTTPResponse:
        timeout = (self._connect_s, read_s or self._answer_s)

        def ask(client: ApiClient) -> BaseHTTPResponse:
            request = client.param_serialize(
                method,
                path,
                query_params=list((query or {}).items()),
                header_params={"Accept": accept, "Content-Type": content_type},
                body=body,
                auth_settings=["BearerToken"],
            )
            answer: BaseHTTPResponse = client.call_api(*request, _request_timeout=timeout).response
            return answer

        client = self._client
        response = ask(client)
        if response.status == 401 and (renewed := self._renewed(client)):
            response.close()
            response = ask(renewed)
        if not 200 <= response.status < 300:
            raise _refusal(response)
        return response

    def _renewed(self, refused: object) -> ApiClient | None:
        """A client with the credentials as they are now; None if they were read a moment ago."""
        with self._renewing:
            if self._client is not refused:
                return self._client
            if self._renewed_at is not None and self._clock() - self._renewed_at < RENEW_S:
                return None
            self._renewed_at = self._clock()
            self._client = ApiClient(_configuration(self._config))  # the old one may have answers that are being read
            return self._client


def _refusal(response: BaseHTTPResponse) -> ApiException:
    error = ApiException(status=response.status, reason=response.reason)
    error.headers = response.headers
    try:
        error.body = response.read(64 * 1024, decode_content=True).decode(errors="replace")
    finally:
        response.close()
    return error


def _configuration(config: KubeConfig) -> Configuration:
    configuration = Configuration()
    if config.api_server:
        _connect(configuration, config)
    elif config.kubeconfig or not os.environ.get(_IN_CLUSTER):
        kube_config.load_kube_config(config.kubeconfig, client_configuration=configuration)  # type: ignore[no-untyped-call]
    else:
        kube_config.load_incluster_config(configuration)  # type: ignore[no-untyped-call]
    configuration.retries = False
    configuration.keep_alive = True
    configuration.connection_pool_maxsize = POOLED_CONNECTIONS
    return configuration


def _connect(configuration: Any, config: KubeConfig) -> None:
    configuration.host = config.api_server
    configuration.ssl_ca_cert = config.ca_file
    configuration.api_key_prefix["BearerToken"] = "Bearer"
    if config.token_file:
        configuration.refresh_api_key_hook = TokenFile(Path(config.token_file))
        configuration.refresh_api_key_hook(configuration)  # the client only asks it once there is a token
    elif config.token:
        configuration.api_key["BearerToken"] = config.token


class TokenFile:
    """Puts the token of a file into a configuration; called before each request, it reads the file when it changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_at: tuple[int, int] | None = None

    def __call__(self, configuration: Configuration) -> None:
        status = self._path.stat()
        if self._read_at != (status.st_mtime_ns, status.st_ino):
            configuration.api_key["BearerToken"] = self._path.read_text().strip()
            self._read_at = (status.st_mtime_ns, status.st_ino)
