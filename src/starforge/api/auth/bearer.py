"""What is read out of a request before anybody is asked."""

import hmac
import ipaddress

from starforge.domain.errors import Unauthenticated

TEXT_MAX = 16_384
"""Characters of a token; JWTs with many groups have some thousand."""
_HOW = "Send the header `Authorization: Bearer <token>`, or `authorization` in the payload of `connection_init`"


def missing() -> Unauthenticated:
    return Unauthenticated(f"There is no token. {_HOW}; an administrator makes one by `starforge token create`.")


def bearer(authorization: str) -> str:
    """The token of `Bearer <token>`; Unauthenticated if it is anything else."""
    kind, _, given = authorization.strip().partition(" ")
    token = given.strip()
    if kind.lower() != "bearer" or not token or len(token) > TEXT_MAX or not token.isascii() or " " in token:
        raise Unauthenticated(f"What was sent is not a token. {_HOW}.")
    return token


def same(given: str, secret: str) -> bool:
    """Whether they are equal, in a time that tells nothing about the secret."""
    return hmac.compare_digest(given.encode(), secret.encode())


def is_loopback(host: str | None) -> bool:
    try:
        return host is not None and ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
