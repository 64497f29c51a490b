"""People whom an issuer of OpenID Connect vouches for, by its signed JWTs."""

from starforge.adapters.oidc.claims import OidcConfig
from starforge.adapters.oidc.issuer import Issuer

__all__ = ["Issuer", "OidcConfig"]
