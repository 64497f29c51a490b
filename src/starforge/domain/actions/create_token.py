"""token create: makes a token, whose secret is shown this once and kept nowhere."""

from collections.abc import Callable
from datetime import datetime

from starforge.domain.ports import TokenStore
from starforge.domain.tokens import ShownToken, Token, TokenDraft, issue


def create_token(
    store: TokenStore, draft: TokenDraft, *, at: datetime, random: Callable[[], str]
) -> tuple[Token, ShownToken]:
    """The token as it is stored, and to be shown; UserMistake with every problem. `random` is that of `Ports`."""
    shown = ShownToken.new(iter(random, None))
    token = issue(draft, shown, at)
    store.add_token(token)
    return token, shown
