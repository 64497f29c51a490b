"""Asks a gateway over HTTP. Subscriptions are in live.py."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

import httpx

from starforge.adapters.settings import load_client_settings
from starforge.cli.answers import Json, data_of
from starforge.domain.errors import Outside, StarForgeError

PATH = "/graphql"
TIMEOUT = httpx.Timeout(40, connect=10)
"""Seconds; the gateway itself gives up after 30."""
_LATER = frozenset({429, 502, 503, 504})
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Gateway(AbstractContextManager["Gateway"]):
    """The GraphQL API at `url` (with or without /graphql). Raises errors of our tree, Outside if it is not there."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = f"{url.rstrip('/').removesuffix(PATH)}{PATH}"
        self.authorization = f"Bearer {token}" if token else None
        self.is_local = urlsplit(self.url).hostname in _LOOPBACK
        self._http = http_client(trust_env=not self.is_local)

    def ask(self, document: str, **variables: object) -> Json:
        """The data of a query or mutation."""
        headers = {"accept": "application/graphql-response+json, application/json;q=0.9"}
        if self.authorization:
            headers["authorization"] = self.authorization
        try:
            response = self._http.post(self.url, json={"query": document, "variables": variables}, headers=headers)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise self.away(error) from error
        if busy := _busy(response, self.url):
            raise busy
        return data_of(_json(response), where=self.url)

    def away(self, error: Exception) -> Outside:
        """The error for a gateway that does not answer."""
        if isinstance(error, httpx.TimeoutException | TimeoutError):
            return Outside(f"The gateway at {self.url} did not answer in time; try again.")
        why = str(error).strip().rstrip(".") or type(error).__name__
        return Outside(
            f"The gateway at {self.url} can't be reached ({why}). Start one with `starforge dev`, or set FORGE_URL."
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    @classmethod
    def from_settings(cls, env: Mapping[str, str]) -> Self:
        """By FORGE_URL and FORGE_TOKEN; SettingsWrong if they can't be."""
        settings = load_client_settings(env)
        return cls(settings.url, settings.token.get_secret_value() if settings.token else None)


def http_client(*, trust_env: bool) -> httpx.Client:
    """`trust_env` False for this machine, which no proxy reaches."""
    return httpx.Client(timeout=TIMEOUT, trust_env=trust_env)


def _busy(response: httpx.Response, url: str) -> Outside | None:
    """The error for an answer that only says to come back later, from a gateway or from what stands before it."""
    if response.status_code not in _LATER:
        return None
    after = response.headers.get("retry-after", "")
    try:
        data_of(_json(response), where=url)
    except Outside as told:
        told.retry_after_s = told.retry_after_s or (float(after) if after.isdecimal() else None)
        return told
    except StarForgeError:
        message = f"The gateway at {url} can't answer now (status {response.status_code}); try again."
        return Outside(message, retry_after_s=float(after) if after.isdecimal() else None)
    return None


def _json(response: httpx.Response) -> object:
    try:
        return response.json()
    except ValueError:
        return None
