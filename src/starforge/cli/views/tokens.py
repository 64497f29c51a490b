"""Tokens as people read them; never a secret, which is not there."""

from collections.abc import Sequence
from datetime import datetime

from rich.table import Table
from rich.text import Text

from starforge.domain.tokens import Token


def token_sentence(token: Token) -> str:
    where = "every project" if token.projects is None else ", ".join(token.projects)
    until = f"until {_day(token.expires_at)}" if token.expires_at else "for ever"
    goes = f" Its jobs go to {token.project} unless they name another project." if token.project else ""
    return f"The token {token.name} ({token.id}) is a {token.role} of {where}, {until}.{goes}"


def tokens_table(tokens: Sequence[Token], at: datetime) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold dim", expand=False)
    for name in ("ID", "NAME", "ROLE", "PROJECTS", "MADE", "LAST USED", "EXPIRES", ""):
        table.add_column(name, no_wrap=name != "PROJECTS", overflow="ellipsis" if name == "NAME" else "fold")
    for token in tokens:
        over = token.over(at)
        table.add_row(*(Text(cell, "dim" if over else "") for cell in _cells(token, over)))
    return table


def _cells(token: Token, over: str | None) -> tuple[str, ...]:
    state = {"was revoked": "revoked", "has expired": "expired"}.get(over or "", "")
    projects = "all" if token.projects is None else ", ".join(token.projects)
    made, used, expires = _day(token.created_at), _day(token.last_used_at), _day(token.expires_at)
    return token.id, token.name, token.role.value, projects, made, used or "never", expires or "never", state


def _day(at: datetime | None) -> str:
    """A time here."""
    return f"{at.astimezone():%Y-%m-%d %H:%M}" if at else ""
