"""Who asks: the bootstrap token, tokens of the database, JWTs of an issuer, and on `dev` whoever is on this machine."""

from starforge.api.auth.authority import KEEP_S, Authority, expiry

__all__ = ["KEEP_S", "Authority", "expiry"]
