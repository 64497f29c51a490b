"""`starforge token create | list | revoke`."""

import os
import re
import secrets
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta

from starforge.adapters.settings import load_database_settings
from starforge.adapters.wiring import now, tokens
from starforge.cli.answers import Json
from starforge.cli.consoles import err_console, out_console, print_json
from starforge.cli.exits import ExitCode
from starforge.cli.views.tokens import token_sentence, tokens_table
from starforge.domain.actions.create_token import create_token
from starforge.domain.actions.revoke_token import revoke_token
from starforge.domain.errors import Problem, UserMistake
from starforge.domain.rights import Role
from starforge.domain.tokens import Token, TokenDraft

_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_LIFE = re.compile(r"([0-9]{1,6})([mhdw])")
_LONGEST = timedelta(days=3660)


def create(
    *, name: str, role: Role, projects: Sequence[str], project: str | None, expires: str | None, as_json: bool
) -> ExitCode:
    at = now()
    draft = TokenDraft(name, role, tuple(projects) or None, project, _expiry(expires, at))
    with tokens(load_database_settings(os.environ)) as store:
        token, shown = create_token(store, draft, at=at, random=lambda: secrets.token_hex(16))
    if as_json:
        print_json(_as_json(token) | {"token": shown.text})
        return ExitCode.SUCCEEDED
    err_console().print(f"{token_sentence(token)}\nKeep it safe: it is shown this once.", soft_wrap=True)
    sys.stdout.write(f"{shown.text}\n")
    return ExitCode.SUCCEEDED


def list_tokens(*, as_json: bool) -> ExitCode:
    with tokens(load_database_settings(os.environ)) as store:
        every = store.all_tokens()
    if as_json:
        print_json([_as_json(token) for token in every])
    elif every:
        out_console().print(tokens_table(every, now()))
    else:
        err_console().print("No tokens. Make one with `starforge token create`.")
    return ExitCode.SUCCEEDED


def revoke(given: str, *, as_json: bool) -> ExitCode:
    with tokens(load_database_settings(os.environ)) as store:
        token = revoke_token(store, given, at=now())
    if as_json:
        print_json(_as_json(token))
    else:
        sentence = f"The token {token.name} ({token.id}) is revoked. Gateways refuse it within seconds."
        out_console().print(sentence, soft_wrap=True)
    return ExitCode.SUCCEEDED


def _expiry(life: str | None, at: datetime) -> datetime | None:
    if life is None:
        return None
    found = _LIFE.fullmatch(life)
    span = int(found[1]) * _UNITS[found[2]] if found else timedelta()
    if not timedelta() < span <= _LONGEST:
        message = f"--expires {life}: give a number and m, h, d or w, for example 30d, at most ten years."
        raise UserMistake([Problem("INVALID", ("expires",), message)])
    return at + span


def _as_json(token: Token) -> Json:
    times = {
        "createdAt": token.created_at,
        "expiresAt": token.expires_at,
        "revokedAt": token.revoked_at,
        "lastUsedAt": token.last_used_at,
    }
    return {
        "id": token.id,
        "name": token.name,
        "role": token.role.value,
        "projects": None if token.projects is None else list(token.projects),
        "project": token.project,
        **{name: at.isoformat(timespec="milliseconds") if at else None for name, at in times.items()},
    }
