"""Who may ask: the bootstrap token has every right; without one, `dev` lets this machine in."""

import hmac
import ipaddress
from collections.abc import Awaitable, Callable

from starforge.api.transport.callers import Credentials
from starforge.domain.errors import Unauthenticated
from starforge.domain.job import Actor, ActorKind
from starforge.domain.rights import Caller, Role


def authenticator(token: str | None, *, open_on_loopback: bool) -> Callable[[Credentials], Awaitable[Caller]]:
    """Tells who somebody is, or raises Unauthenticated."""

    async def authenticate(credentials: Credentials) -> Caller:
        if token is None and open_on_loopback and _is_loopback(credentials.client_host):
            return Caller(Actor("dev", ActorKind.TOKEN), Role.ADMIN)
        if token is not None and _matches(credentials.authorization, token):
            return Caller(Actor("bootstrap", ActorKind.TOKEN), Role.ADMIN)
        raise Unauthenticated("There is no valid token: send the header `Authorization: Bearer <token>`.")

    return authenticate


def _matches(authorization: str | None, token: str) -> bool:
    kind, _, given = (authorization or "").partition(" ")
    same = hmac.compare_digest(given.strip().encode(errors="surrogatepass"), token.encode())
    return kind.lower() == "bearer" and same


def _is_loopback(host: str | None) -> bool:
    try:
        return host is not None and ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
