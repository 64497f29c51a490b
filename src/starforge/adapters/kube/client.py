"""The official client, asked for raw JSON: its models are slow, and hide fields that they do not know."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubernetes import config as kube_config
from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from urllib3.response import BaseHTTPResponse

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.settings import KubeConfig

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
METADATA_ONLY = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
CONNECT_S = 5.0
ANSWER_S = 30.0
PAGE = 500
POOLED_CONNECTIONS = 64
_IN_CLUSTER = "KUBERNETES_SERVICE_HOST"  # Kubernetes sets it in every Pod

Query = Mapping[str, str | int]


class KubeApi:
    """Requests to one API server. ApiException for every answer but 2xx, HTTPError of urllib3 when there is none."""

    def __init__(self, config: KubeConfig) -> None:
        self._client = ApiClient(_configuration(config))

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
        more = ""
        while True:
            asked = {**(query or {}), "limit": PAGE, **({"continue": more} if more else {})}
            page = self.get(path, asked, accept=accept)
            found += page.get("items") or []
            metadata = page.get("metadata") or {}
            more = metadata.get("continue") or ""
            if not more:
                return found, metadata.get("resourceVersion", "")

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
        read_s: float = ANSWER_S,
    ) -> BaseHTTPResponse:
        request = self._client.param_serialize(
            method,
            path,
            query_params=list((query or {}).items()),
            header_params={"Accept": accept, "Content-Type": content_type},
            body=body,
            auth_settings=["BearerToken"],
        )
        answer = self._client.call_api(*request, _request_timeout=(CONNECT_S, read_s))
        response: BaseHTTPResponse = answer.response
        if not 200 <= response.status < 300:
            raise _refusal(response)
        return response


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
