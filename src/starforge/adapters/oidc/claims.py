"""What the claims of a JWT that is genuine allow its owner."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from starforge.domain.errors import Forbidden, Unauthenticated
from starforge.domain.job import Actor, ActorKind
from starforge.domain.names import is_project
from starforge.domain.rights import PROJECTS_MAX, Caller, Role

NAME_MAX = 100


@dataclass(frozen=True)
class OidcConfig:
    """An issuer, and what its claims mean: `roles` says what values of the role claim stand for."""

    issuer: str
    audience: str
    roles: Mapping[str, Role]
    jwks_url: str | None = None
    ca_file: Path | None = None
    name_claim: str = "sub"
    role_claim: str = "roles"
    projects_claim: str = "projects"


def caller_of(claims: Mapping[str, Any], config: OidcConfig, *, expires_at: datetime) -> Caller:
    """Who they are; Unauthenticated without a name, Forbidden without a role or project here."""
    name = _at(claims, config.name_claim)
    if not isinstance(name, str) or not name.strip():
        raise Unauthenticated(f"The token has no name in its claim {config.name_claim!r}. Tell an administrator.")
    shown = "".join(char if char.isprintable() else "?" for char in name)[:NAME_MAX]
    role = _role(claims, config)
    projects = None if role is Role.ADMIN else _projects(claims, config)
    only = next(iter(projects)) if projects and len(projects) == 1 else None
    return Caller(Actor(shown, ActorKind.USER), role, only, projects, expires_at=expires_at)


def _role(claims: Mapping[str, Any], config: OidcConfig) -> Role:
    roles = {config.roles[text] for text in _texts(claims, config.role_claim) if text in config.roles}
    if not roles:
        raise Forbidden(
            f"Your sign-in is fine, but no value of its claim {config.role_claim!r} gives you a role here. Ask an "
            "administrator to be added."
        )
    return max(roles, key=list(Role).index)


def _projects(claims: Mapping[str, Any], config: OidcConfig) -> frozenset[str]:
    """Values that can't be projects are groups of something else."""
    found = sorted(filter(is_project, set(_texts(claims, config.projects_claim))))
    if not found:
        raise Forbidden(
            f"Your sign-in is fine, but its claim {config.projects_claim!r} names no project. Ask an administrator to "
            "be added to one."
        )
    return frozenset(found[:PROJECTS_MAX])


def _texts(claims: Mapping[str, Any], name: str) -> list[str]:
    """Values of a claim that is a text or a list of texts."""
    found = _at(claims, name)
    values = found if isinstance(found, list) else [found]
    return [value for value in values if isinstance(value, str)]


def _at(claims: Mapping[str, Any], name: str) -> object:
    """A claim by its name, or by its path with dots."""
    if name in claims:
        return claims[name]
    head, _, rest = name.partition(".")
    inner = claims.get(head)
    return _at(inner, rest) if rest and isinstance(inner, dict) else None
