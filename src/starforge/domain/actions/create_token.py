"""token create: makes a token, whose secret is shown this once and kept nowhere."""

from collections.abc import Callable
from datetime import datetime

from starforge.domain.errors import Problem, UserMistake
from starforge.domain.ports import TokenStore
from starforge.domain.tokens import ShownToken, Token, TokenDraft, issue


def create_token(
    store: TokenStore, draft: TokenDraft, *, at: datetime, random: Callable[[], str]
) -> tuple[Token, ShownToken]:
    """The token as it is stored, and to be shown; UserMistake with every problem. `random` is that of `Ports`.

    UserMistake too if a token that is valid has its name, as jobs remember who submitted them by name, and whoever has
    that name is shown their idempotency keys. Two calls at the same time can get past this: no unique index can tell
    when a token expires, and whoever makes tokens reaches the whole database anyway.
    """
    shown = ShownToken.new(iter(random, None))
    token = issue(draft, shown, at)
    _demand_free(store, token.name, at)
    store.add_token(token)
    return token, shown


def _demand_free(store: TokenStore, name: str, at: datetime) -> None:
    holder = next((one for one in store.all_tokens() if one.name == name and one.over(at) is None), None)
    if holder:
        message = f"The token {holder.id} is named {name!r} already: choose another name, or revoke it first."
        raise UserMistake([Problem("DUPLICATE", ("name",), message)])
