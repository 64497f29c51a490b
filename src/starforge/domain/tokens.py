"""Tokens that people and programs show: `sf_<id>_<secret>`. The id finds the row, the secret is kept as its hash alone.

The hash is a plain sha256. Slow and salted ones protect what people make up, which can be guessed; a secret of 256
random bits can't be, however fast a hash is, and a slow one would cost as much with every request.
"""

import hashlib
import hmac
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NewType

from starforge.domain.errors import Problem, UserMistake
from starforge.domain.job import Actor, ActorKind
from starforge.domain.names import is_project
from starforge.domain.rights import PROJECTS_MAX, Caller, Role

TokenId = NewType("TokenId", str)
PREFIX = "sf_"
_ID_LENGTH, _SECRET_LENGTH = 16, 64
_FORM = re.compile(rf"{PREFIX}([0-9a-f]{{{_ID_LENGTH}}})_([0-9a-f]{{{_SECRET_LENGTH}}})")


@dataclass(frozen=True)
class ShownToken:
    """A token as its owner has it: a secret as a whole."""

    id: TokenId
    secret: str = field(repr=False)

    @classmethod
    def read(cls, text: str) -> "ShownToken | None":
        """The token that `text` is; None if it has not the form of one."""
        found = _FORM.fullmatch(text)
        return cls(TokenId(found[1]), found[2]) if found else None

    @classmethod
    def new(cls, random: Iterator[str]) -> "ShownToken":
        """A token of random texts of at least 32 hexadecimal digits each."""
        return cls(TokenId(next(random)[:_ID_LENGTH]), (next(random) + next(random))[:_SECRET_LENGTH])

    @property
    def text(self) -> str:
        return f"{PREFIX}{self.id}_{self.secret}"

    @property
    def secret_sha256(self) -> str:
        return hashlib.sha256(self.secret.encode()).hexdigest()


@dataclass(frozen=True)
class TokenDraft:
    """What somebody wants a token to be; `projects` is None for all there are, which ADMIN has."""

    name: str
    role: Role
    projects: tuple[str, ...] | None = None
    project: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True)
class Token:
    """A token as it is stored. `project` is where jobs go that name none; `last_used_at` is right to a minute."""

    id: TokenId
    secret_sha256: str = field(repr=False)
    name: str
    role: Role
    projects: tuple[str, ...] | None
    project: str | None
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None

    def opened_by(self, shown: ShownToken) -> bool:
        """Whether it is the one that is shown, in a time that tells nothing about the secret."""
        return hmac.compare_digest(self.secret_sha256, shown.secret_sha256)

    def over(self, at: datetime) -> str | None:
        """Why it is not valid any more, as the end of a sentence; None if it is."""
        if self.revoked_at is not None:
            return "was revoked"
        return "has expired" if self.expires_at is not None and self.expires_at <= at else None

    @property
    def caller(self) -> Caller:
        projects = None if self.projects is None else frozenset(self.projects)
        return Caller(Actor(self.name, ActorKind.TOKEN), self.role, self.project, projects, self.id, self.expires_at)


def issue(draft: TokenDraft, shown: ShownToken, at: datetime) -> Token:
    """The token to store for one that is shown; UserMistake with every problem of the draft."""
    problems = [*_who(draft, at), *_where(draft)]
    if problems:
        raise UserMistake(problems)
    projects = None if draft.projects is None else tuple(sorted(set(draft.projects)))
    only = projects[0] if projects and len(projects) == 1 else None
    return Token(
        shown.id, shown.secret_sha256, draft.name, draft.role, projects, draft.project or only, at, draft.expires_at
    )


def _who(draft: TokenDraft, at: datetime) -> Iterator[Problem]:
    if not draft.name.strip() or len(draft.name) > 100 or not draft.name.isprintable():
        yield Problem("INVALID", ("name",), "Give the token a name of 1 to 100 printable characters.")
    if draft.expires_at is not None and draft.expires_at <= at:
        yield Problem("OUT_OF_RANGE", ("expires",), "The token would have expired already: let it live longer.")


def _where(draft: TokenDraft) -> Iterator[Problem]:
    named = draft.projects or ()
    if draft.role is Role.ADMIN and draft.projects is not None:
        yield Problem("EXCLUSIVE", ("projects",), "An ADMIN sees every project: leave the projects out.")
    if draft.role is not Role.ADMIN and not named:
        yield Problem("REQUIRED", ("projects",), f"Name the projects of the {draft.role}: only an ADMIN sees all.")
    if len(set(named)) > PROJECTS_MAX:
        yield Problem("TOO_LARGE", ("projects",), f"A token has at most {PROJECTS_MAX:,} projects.")
    for project in {*named, *([draft.project] if draft.project else ())}:
        if not is_project(project):
            yield Problem("INVALID", ("projects",), f"{project!r} can't be the name of a project.")
    if draft.project and named and draft.project not in named:
        message = f"The default project {draft.project!r} is none of the token's: add it to them."
        yield Problem("INVALID", ("project",), message)
