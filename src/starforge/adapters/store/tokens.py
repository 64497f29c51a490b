"""Tokens: found by id, never by their secret."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, or_, select, update

from starforge.adapters.store.statements import added
from starforge.adapters.store.tables import TOKEN
from starforge.domain.errors import StaleRevision
from starforge.domain.rights import Role
from starforge.domain.tokens import Token, TokenId


def add_token(connection: Connection, token: Token) -> None:
    if not added(connection, TOKEN, asdict(token) | {"role": token.role.value}):
        raise StaleRevision(f"There is a token {token.id} already; make another one.")


def tokens(connection: Connection, ids: Sequence[TokenId]) -> Mapping[TokenId, Token]:
    rows = connection.execute(select(TOKEN).where(TOKEN.c.id.in_(ids)))
    return {token.id: token for token in map(_token, rows)}


def all_tokens(connection: Connection) -> Sequence[Token]:
    return [_token(row) for row in connection.execute(select(TOKEN).order_by(TOKEN.c.created_at, TOKEN.c.id))]


def revoke_token(connection: Connection, token: TokenId, *, at: datetime) -> Token | None:
    standing = update(TOKEN).where(TOKEN.c.id == token, TOKEN.c.revoked_at.is_(None))
    connection.execute(standing.values(revoked_at=at))
    return tokens(connection, [token]).get(token)


def touch_token(connection: Connection, token: TokenId, *, at: datetime) -> None:
    older = or_(TOKEN.c.last_used_at.is_(None), TOKEN.c.last_used_at < at)
    connection.execute(update(TOKEN).where(TOKEN.c.id == token, older).values(last_used_at=at))


def _token(row: Row[Any]) -> Token:
    values = dict(row._mapping)
    return Token(**values | {"role": Role(row.role)})
