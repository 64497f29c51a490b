"""What every mutation answers, and what its caller can put right."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import strawberry

from starforge.api.directives import list_size
from starforge.api.enums import UserErrorCode
from starforge.api.interfaces import Workload
from starforge.domain.errors import Problem, Unsatisfiable, UserMistake

if TYPE_CHECKING:
    from starforge.api.capacity.fit_types import FitReport

LazyFitReport = Annotated["FitReport", strawberry.lazy("starforge.api.capacity.fit_types")]
FIELD = (
    "Path of the input at fault from the argument's name on, list indexes as decimal strings; null if it is the whole "
    "request."
)


@strawberry.interface(
    description=("Something the caller can put right; the concrete type adds what a form or a script needs to do so.")
)
class UserError:
    code: UserErrorCode = strawberry.field(description="Code to act on.")
    field: list[str] | None = strawberry.field(
        description=(
            "Path of the input at fault from the argument's name on, list indexes as decimal strings, for example "
            '["input", "spec", "pools", "0", "machines"]; null if it is the whole request.'
        )
    )
    message: str = strawberry.field(description="Sentence for a person that says what is wrong and what to do.")


@strawberry.type(description="An input or the request as a whole is not as it must be.")
class InputError(UserError):
    field: list[str] | None = strawberry.field(description=FIELD)


@strawberry.type(
    description=(
        "The idempotency key was used before with another body, or the object is not in a state that allows this."
    )
)
class ConflictError(UserError):
    field: list[str] | None = strawberry.field(description=FIELD)
    workload: Workload | None = strawberry.field(
        description=("The job or playground that stands in the way; null if the caller may not see it.")
    )


@strawberry.type(description="No fleet could ever place it.")
class UnsatisfiableError(UserError):
    field: list[str] | None = strawberry.field(description=FIELD)
    fit: LazyFitReport = strawberry.field(description="Why, pool by pool.")


@strawberry.type(description="A file of the code is refused.")
class CodeError(UserError):
    field: list[str] | None = strawberry.field(description=FIELD)
    path: str = strawberry.field(description="Path of the file within the code.")
    rule: str = strawberry.field(description="Rule that refuses it, never the text that it matched.")


@strawberry.interface(description="What every mutation answers.")
class MutationPayload:
    user_errors: list[UserError] = strawberry.field(
        description=("What the caller can put right; empty when all went well."), directives=[list_size(5)]
    )


_IN_THE_WAY = (UserErrorCode.CONFLICT, UserErrorCode.WRONG_STATE)


def user_errors(mistake: UserMistake, *path: str, workload: Workload | None = None) -> list[UserError]:
    """The problems of a mistake, with `path` before each of their fields; `workload` is what stands in the way."""
    if isinstance(mistake, Unsatisfiable):
        return [_unsatisfiable(mistake, path)]
    return [_user_error(problem, path, workload) for problem in mistake.problems]


def _unsatisfiable(mistake: Unsatisfiable, path: Sequence[str]) -> UserError:
    from starforge.api.capacity.fit_types import FitReport

    [problem] = mistake.problems
    field = [*path, *problem.field]
    code = UserErrorCode(problem.code)
    return UnsatisfiableError(code=code, field=field, message=problem.message, fit=FitReport.of(mistake.fit))


def _user_error(problem: Problem, path: Sequence[str], workload: Workload | None) -> UserError:
    code, field, message = UserErrorCode(problem.code), [*path, *problem.field], problem.message
    if code in _IN_THE_WAY:
        return ConflictError(code=code, field=field, message=message, workload=workload)
    if problem.rule is not None and problem.file is not None:
        return CodeError(code=code, field=field, message=message, path=problem.file, rule=problem.rule)
    return InputError(code=code, field=field, message=message)
