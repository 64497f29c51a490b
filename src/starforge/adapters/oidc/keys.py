"""The issuer's public keys: fetched when needed, followed when they rotate, kept while it is down."""

import asyncio
import logging
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from starforge.adapters.oidc.algorithms import Key, key_for, usable_keys
from starforge.adapters.oidc.fetch import fetch_json
from starforge.domain.errors import IssuerUnavailable

ASK_EVERY_S = 30.0
"""An unknown key is asked for at most once in so long, so that made-up tokens can't make us flood the issuer."""
FRESH_S = 600.0
"""Keys that were withdrawn are known to be so after this time."""
_DISCOVERY = "/.well-known/openid-configuration"
_log = logging.getLogger(__name__)


class Keys:
    """The keys of an issuer. `jwks_url` is taken from its discovery document if it is not given."""

    def __init__(self, issuer: str, jwks_url: str | None, trust: ssl.SSLContext, *, clock: Callable[[], float]) -> None:
        self._issuer, self._jwks_url, self._trust, self._clock = issuer, jwks_url, trust, clock
        self._keys: Sequence[Key] = ()
        self._outage: IssuerUnavailable | None = None
        self._asked_at: float | None = None
        self._fetched_at: float | None = None
        self._asking: asyncio.Task[None] | None = None

    async def key(self, header: Mapping[str, Any]) -> Key | None:
        """The key for a token's header; None if the issuer has no such key, IssuerUnavailable if it can't be told."""
        found = key_for(header, self._keys)
        if found is None or self._is_stale():
            await self._ask_again()
            found = key_for(header, self._keys)
        if found is None and self._outage is not None:
            raise self._outage
        return found

    def _is_stale(self) -> bool:
        return self._fetched_at is None or self._clock() - self._fetched_at >= FRESH_S

    async def _ask_again(self) -> None:
        """Fetch the keys unless that was just done; whoever comes meanwhile waits for the same answer."""
        if self._asking is None:
            if self._asked_at is not None and self._clock() - self._asked_at < ASK_EVERY_S:
                return
            self._asked_at = self._clock()
            self._asking = asyncio.create_task(self._fetch())
            self._asking.add_done_callback(self._fetched)
        await asyncio.shield(self._asking)

    def _fetched(self, done: asyncio.Task[None]) -> None:
        self._asking = None
        if not done.cancelled() and (defect := done.exception()):
            _log.error("The issuer's keys could not be read.", exc_info=defect)

    async def _fetch(self) -> None:
        try:
            keys = usable_keys(await fetch_json(await self._url(), self._trust))
            if not keys:
                raise IssuerUnavailable(f"The issuer {self._issuer} shows no key that can be used; tell its operator.")
        except IssuerUnavailable as outage:
            _log.warning("%s Keys that are known stay.", outage.message)
            self._outage = outage
            return
        self._keys, self._outage, self._fetched_at = keys, None, self._clock()

    async def _url(self) -> str:
        if self._jwks_url is None:
            self._jwks_url = await self._discovered()
        return self._jwks_url

    async def _discovered(self) -> str:
        document = await fetch_json(self._issuer.rstrip("/") + _DISCOVERY, self._trust)
        url = document.get("jwks_uri")
        if document.get("issuer") != self._issuer:
            raise IssuerUnavailable(f"The discovery document of {self._issuer} is of another issuer; tell an operator.")
        secure = not self._issuer.startswith("https://") or (isinstance(url, str) and url.startswith("https://"))
        if not isinstance(url, str) or not secure:
            raise IssuerUnavailable(f"The discovery document of {self._issuer} names no keys; tell its operator.")
        return url
