"""The port `Identities`: checks JWTs by the keys of their issuer."""

import binascii
import json
import math
import ssl
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import certifi
from joserfc import jwt
from joserfc.errors import ExpiredTokenError, JoseError
from joserfc.util import urlsafe_b64decode

from starforge.adapters.oidc.algorithms import Key, Signatures, is_allowed
from starforge.adapters.oidc.claims import OidcConfig, caller_of
from starforge.adapters.oidc.keys import Keys
from starforge.domain.errors import Unauthenticated
from starforge.domain.rights import Caller

LEEWAY_S = 30
"""How far the issuer's clock may be off."""
_LATEST = datetime(9000, 1, 1, tzinfo=UTC)
_SIGNATURES = Signatures()


class Issuer:
    """People whom `config.issuer` vouches for. `clock` counts seconds for how old keys are."""

    def __init__(
        self, config: OidcConfig, *, now: Callable[[], datetime], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._config, self._now = config, now
        trust = ssl.create_default_context(cafile=str(config.ca_file or certifi.where()))
        self._keys = Keys(config.issuer, config.jwks_url, trust, clock=clock)

    async def caller(self, token: str) -> Caller:
        key = await self._keys.key(_header(token))
        if key is None:
            raise _refused("is signed with a key that its issuer does not show")
        claims = self._claims(token, key)
        return caller_of(claims, self._config, expires_at=_expiry(claims["exp"]))

    def _claims(self, token: str, key: Key) -> Mapping[str, Any]:
        """The claims of a genuine token that is meant for us and valid now."""
        config, now = self._config, int(self._now().timestamp())
        registry = jwt.JWTClaimsRegistry(
            now=now,
            leeway=LEEWAY_S,
            iss={"essential": True, "value": config.issuer},
            aud={"essential": True, "value": config.audience},
            exp={"essential": True},
        )
        try:
            claims = jwt.decode(token, key, registry=_SIGNATURES).claims
            registry.validate(claims)
        except ExpiredTokenError:
            raise _refused("has expired") from None
        except JoseError as error:
            raise _refused(f"is not valid here ({_why(error)})") from None
        except (ValueError, TypeError):
            raise _refused("is damaged") from None
        return claims


def _header(token: str) -> Mapping[str, Any]:
    """The header of a token, not checked yet; Unauthenticated if none of our algorithms may have signed it."""
    try:
        header = json.loads(urlsafe_b64decode(token.partition(".")[0].encode()))
    except (ValueError, binascii.Error, RecursionError):
        raise _refused("is not a JWT") from None
    if not isinstance(header, dict):
        raise _refused("is not a JWT")
    if "crit" in header:
        raise _refused("asks for extensions (crit) that are not known here")
    if not is_allowed(header.get("alg")):
        raise _refused("is signed by a method that is not taken: RS256, ES256 and EdDSA are")
    return header


def _expiry(exp: float) -> datetime:
    """When a token with this `exp` is not taken any more."""
    seconds = min(math.ceil(exp) + LEEWAY_S, int(_LATEST.timestamp()))
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def _why(error: JoseError) -> str:
    """The kind of problem, and the claim that has it; never its value."""
    claim = getattr(error, "claim", None)
    return f"{error.error}: {claim}" if claim else error.error


def _refused(why: str) -> Unauthenticated:
    return Unauthenticated(f"Your token {why}. Sign in again, or ask an administrator.")
