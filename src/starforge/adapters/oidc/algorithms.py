"""Which keys may check which signatures: RS256, ES256 and EdDSA alone, each with a key of its own kind."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from joserfc.errors import JoseError, UnsupportedAlgorithmError
from joserfc.jwk import ECKey, JWKRegistry, OKPKey, RSAKey
from joserfc.jws import JWSRegistry
from joserfc.util import urlsafe_b64decode

Key = RSAKey | ECKey | OKPKey
RSA_BITS_MIN = 2048
KEYS_MAX = 100
_log = logging.getLogger(__name__)
_KINDS = {"RS256": ("RSA", None), "ES256": ("EC", "P-256"), "EdDSA": ("OKP", "Ed25519"), "Ed25519": ("OKP", "Ed25519")}


class Signatures(JWSRegistry):
    """What checks signatures. The library warns of EdDSA, whose name is old by RFC 9864, but issuers use it."""

    max_header_length = 4096
    max_payload_length = 16_384

    def __init__(self) -> None:
        super().__init__(algorithms=list(_KINDS), strict_check_header=False)

    def get_alg(self, name: str) -> Any:
        if name not in _KINDS:
            raise UnsupportedAlgorithmError(f"Algorithm of '{name}' is not allowed")
        return self.algorithms[name]


def usable_keys(document: Mapping[str, Any]) -> Sequence[Key]:
    """Keys of a JWKS that can check a signature; others are left out, and logged if they are broken."""
    listed = document.get("keys")
    found = []
    for one in listed[:KEYS_MAX] if isinstance(listed, list) else ():
        if isinstance(one, dict) and one.get("use", "sig") == "sig" and (_of(one) in _KINDS.values()):
            try:
                found.append(_imported(one))
            except (JoseError, ValueError, TypeError) as error:
                _log.warning("The issuer's key %.40r can't be used: %s", one.get("kid"), type(error).__name__)
    return found


def _of(one: Mapping[str, Any]) -> tuple[object, object]:
    return one.get("kty"), None if one.get("kty") == "RSA" else one.get("crv")


def _imported(one: dict[str, Any]) -> Key:
    if one["kty"] == "RSA" and 8 * len(urlsafe_b64decode(str(one.get("n")).encode())) < RSA_BITS_MIN:
        raise ValueError("an RSA key of too few bits")
    key = JWKRegistry.import_key({name: value for name, value in one.items() if name != "key_ops"})
    if not isinstance(key, RSAKey | ECKey | OKPKey):
        raise TypeError("a key that is no public one")
    return key


def key_for(header: Mapping[str, Any], keys: Sequence[Key]) -> Key | None:
    """The key that signed what has this header, as far as can be told; without `kid`, the only one of its kind."""
    kid, algorithm = header.get("kid"), str(header.get("alg"))
    fitting = [key for key in keys if _fits(key, algorithm)]
    if kid is not None:
        return next((key for key in fitting if key.get("kid") == kid), None)
    return fitting[0] if len(fitting) == 1 else None


def _fits(key: Key, algorithm: str) -> bool:
    curve = None if isinstance(key, RSAKey) else key.curve_name
    return _KINDS.get(algorithm) == (key.key_type, curve) and key.get("alg") in {None, algorithm}


def is_allowed(algorithm: object) -> bool:
    return isinstance(algorithm, str) and algorithm in _KINDS
