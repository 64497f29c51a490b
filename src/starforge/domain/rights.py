"""Who asks, and what they may: the one place that knows what a role allows."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from starforge.domain.errors import Forbidden, Problem, SpecRefused
from starforge.domain.job import Actor
from starforge.domain.queries import EventFilter, JobFilter
from starforge.domain.spec import SpecDraft

PROJECTS_MAX = 1000
"""Most projects that one caller has."""


class Role(StrEnum):
    """What a token is for; each allows what those before it do."""

    VIEWER = "VIEWER"
    SUBMITTER = "SUBMITTER"
    ADMIN = "ADMIN"


class Permission(StrEnum):
    READ = "READ"
    READ_LOGS = "READ_LOGS"
    READ_CODE = "READ_CODE"
    SUBMIT_JOBS = "SUBMIT_JOBS"
    CANCEL_JOBS = "CANCEL_JOBS"
    MANAGE_PLAYGROUNDS = "MANAGE_PLAYGROUNDS"
    OPERATE = "OPERATE"


_READS = (Permission.READ, Permission.READ_LOGS, Permission.READ_CODE)
_SUBMITS = (*_READS, Permission.SUBMIT_JOBS, Permission.CANCEL_JOBS, Permission.MANAGE_PLAYGROUNDS)
_PERMISSIONS = {Role.VIEWER: _READS, Role.SUBMITTER: _SUBMITS, Role.ADMIN: (*_SUBMITS, Permission.OPERATE)}
_RANK = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True)
class Caller:
    """Whoever sends a request, as far as their token tells.

    `projects` are those they may see, None for all there are; `project` is where their jobs go unless they name one.
    `token` identifies the token among those that can be revoked, None for any other way in.
    """

    actor: Actor
    role: Role
    project: str | None = None
    projects: frozenset[str] | None = None
    token: str | None = None
    expires_at: datetime | None = None

    @property
    def rights(self) -> tuple[str, ...]:
        """Equal for two callers who are shown the same: part of the key of whatever is shared between callers."""
        return (self.role.value, *sorted(self.projects)) if self.projects is not None else (self.role.value, "*")

    @property
    def key(self) -> str:
        """Equal for two requests of the same person or program."""
        return f"{self.actor.kind}:{self.token or self.actor.name}"

    @property
    def permissions(self) -> tuple[Permission, ...]:
        return _PERMISSIONS[self.role]

    def has(self, role: Role) -> bool:
        return _RANK[self.role] >= _RANK[role]

    def demand(self, role: Role) -> None:
        """Forbidden if a higher role is needed than they have."""
        if not self.has(role):
            raise Forbidden(f"This needs a token with the role {role}; yours is {self.role}. Ask an administrator.")

    def sees(self, project: str | None) -> bool:
        """Whether they may see what lies in a project, or what lies in none."""
        return self.projects is None or project in self.projects

    def placed(self, draft: SpecDraft) -> SpecDraft:
        """The draft with its project; SpecRefused if it is none of theirs, or if they have to name one."""
        project = draft.project or self.project
        if project is None:
            message = "Name the project, as you have several; `viewer { projects }` lists them."
            raise SpecRefused([Problem("REQUIRED", ("spec", "project"), message)])
        if not self.sees(project):
            message = f"There is no project {project!r} that you may use; `viewer {{ projects }}` lists yours."
            raise SpecRefused([Problem("UNKNOWN_PROJECT", ("spec", "project"), message)])
        return replace(draft, project=project)

    def jobs(self, which: JobFilter) -> JobFilter:
        """The filter narrowed to what they may see; idempotency keys are those that they gave themselves."""
        which = replace(which, projects=self._seen(which.projects))
        if which.idempotency_keys is None:
            return which
        mine = which.created_by is None or self.actor.name in which.created_by
        return replace(which, created_by=(self.actor.name,) if mine else ())

    def events(self, which: EventFilter) -> EventFilter:
        """The filter narrowed to what they may see."""
        return replace(which, projects=self._seen(which.projects))

    def _seen(self, wanted: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if self.projects is None:
            return wanted
        return tuple(sorted(self.projects.intersection(wanted) if wanted is not None else self.projects))
