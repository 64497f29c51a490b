"""token revoke: ends a token for good; its sockets are closed when gateways look next."""

from datetime import datetime

from starforge.domain.errors import NotFound
from starforge.domain.ports import TokenStore
from starforge.domain.tokens import PREFIX, ShownToken, Token, TokenId


def revoke_token(store: TokenStore, given: str, *, at: datetime) -> Token:
    """The token, revoked now or before; NotFound if there is none. `given` is its id, or the token as a whole."""
    shown = ShownToken.read(given)
    token_id = shown.id if shown else TokenId(given.removeprefix(PREFIX))
    token = store.revoke_token(token_id, at=at)
    if token is None:
        # What was given is not repeated: it may be a secret in a wrong form.
        raise NotFound("There is no such token; `starforge token list` shows the ids of those there are.")
    return token
