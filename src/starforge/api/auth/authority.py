"""Tells who somebody is, with one question to the database per token and few seconds."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import ParamSpec, Protocol, TypeVar

from starforge.api.auth.bearer import bearer, is_loopback, missing, same
from starforge.api.auth.remembered import Remembered
from starforge.api.transport.callers import Credentials
from starforge.domain.errors import StoreUnavailable, Unauthenticated
from starforge.domain.job import Actor, ActorKind
from starforge.domain.ports import Identities, TokenStore
from starforge.domain.rights import Caller, Role
from starforge.domain.tokens import ShownToken, TokenId

KEEP_S = 5.0
"""A token that was revoked is refused after so long at the latest."""
KEEP_MOST = 10_000
TOUCH_EVERY = timedelta(minutes=1)
_log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")


class Ask(Protocol):
    """Makes a blocking call of the database off the event loop, as `Services.thread` does."""

    async def __call__(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...


class Authority:
    """Who may ask.

    `bootstrap` is a token with every right. Without it, `open_on_loopback` lets in whoever is on this machine and shows
    no token. `identities` knows the JWTs of an issuer. Jobs of an ADMIN go to `default_project` unless they name one.
    """

    def __init__(
        self,
        store: TokenStore,
        ask: Ask,
        *,
        now: Callable[[], datetime],
        default_project: str,
        bootstrap: str | None = None,
        open_on_loopback: bool = False,
        identities: Identities | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store, self._ask, self._now = store, ask, now
        self._default_project = default_project
        self._bootstrap, self._open_on_loopback = bootstrap, open_on_loopback
        self._identities = identities
        self._known: Remembered[Caller] = Remembered(keep_s=KEEP_S, most=KEEP_MOST, clock=clock)
        self._used: dict[TokenId, datetime] = {}
        self._noting: asyncio.Task[None] | None = None

    async def authenticate(self, credentials: Credentials) -> Caller:
        """Who shows these credentials.

        Unauthenticated with what to do if nobody does, Forbidden if an issuer gives them no role here, StoreUnavailable
        or IssuerUnavailable if it can't be told right now.
        """
        if not credentials.authorization:
            return self._without_token(credentials.client_host)
        token = bearer(credentials.authorization)
        if self._bootstrap is not None and same(token, self._bootstrap):
            return self._admin("bootstrap")
        key = hashlib.sha256(token.encode()).digest()  # so that no token stays in memory for being remembered
        caller = await self._known.get(key, lambda: self._look_up(token))
        if _expired(caller, self._now()):
            raise _over(f"The token of {caller.actor.name}", "has expired")
        return caller

    async def still_valid(self, callers: Collection[Caller]) -> set[Caller]:
        """Those whose token has neither expired nor been revoked; StoreUnavailable if that can't be told.

        The database is asked once for all. A JWT can't be revoked: it ends when it expires.
        """
        ids = sorted({TokenId(caller.token) for caller in callers if caller.token is not None})
        found = await self._ask(self._store.tokens, ids) if ids else {}
        now = self._now()
        valid = {token.id for token in found.values() if token.over(now) is None}
        return {caller for caller in callers if not _expired(caller, now) and caller.token in {None, *valid}}

    async def close(self) -> None:
        """Return when nothing is being written any more; call it before the threads of `ask` end."""
        while self._noting is not None and not self._noting.done():
            await asyncio.wait([self._noting])

    def _without_token(self, host: str | None) -> Caller:
        if self._open_on_loopback and self._bootstrap is None and is_loopback(host):
            return self._admin("dev")
        raise missing()

    def _admin(self, name: str) -> Caller:
        return Caller(Actor(name, ActorKind.TOKEN), Role.ADMIN, self._default_project)

    async def _look_up(self, token: str) -> Caller:
        shown = ShownToken.read(token)
        if shown is not None:
            caller = await self._of_database(shown)
        elif self._identities is not None and token.count(".") == 2:
            caller = await self._identities.caller(token)
        else:
            raise _unknown()
        if caller.project is None and caller.projects is None:
            return replace(caller, project=self._default_project)
        return caller

    async def _of_database(self, shown: ShownToken) -> Caller:
        token = (await self._ask(self._store.tokens, [shown.id])).get(shown.id)
        if token is None or not token.opened_by(shown):
            raise _unknown()
        now = self._now()
        if why := token.over(now):
            raise _over(f"The token {token.name} ({token.id})", why)
        if token.last_used_at is None or token.last_used_at <= now - TOUCH_EVERY:
            self._note_use(token.id, now)
        return token.caller

    def _note_use(self, token: TokenId, at: datetime) -> None:
        self._used[token] = at
        if self._noting is None or self._noting.done():
            self._noting = asyncio.create_task(self._note_uses())

    async def _note_uses(self) -> None:
        """One after the other, so that a database that is slow to write keeps one thread busy and not all."""
        while self._used:
            token, at = self._used.popitem()
            try:
                await self._ask(self._store.touch_token, token, at=at)
            except StoreUnavailable as outage:
                _log.warning("It could not be noted that token %s was used: %s", token, outage.message)


def expiry(caller: Caller) -> float | None:
    """When they are no longer who they are, in seconds since the epoch; None for never."""
    return None if caller.expires_at is None else caller.expires_at.timestamp()


def _expired(caller: Caller, now: datetime) -> bool:
    return caller.expires_at is not None and caller.expires_at <= now


def _unknown() -> Unauthenticated:
    return Unauthenticated(
        "The token is not known here. Check that it is whole and was made for this installation, or ask an "
        "administrator for one."
    )


def _over(which: str, why: str) -> Unauthenticated:
    return Unauthenticated(f"{which} {why}. Ask an administrator for another one, or sign in again.")
