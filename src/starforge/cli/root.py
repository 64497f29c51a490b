"""What every verb has in common: expected failures are a sentence on stderr and an exit code, never a traceback."""

from typing import Any

import typer
from typer.core import TyperGroup

from starforge.cli.exits import exit_code, tell
from starforge.domain.errors import StarForgeError


class Root(TyperGroup):
    """The group of all verbs."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except StarForgeError as error:
            tell(error)
            raise typer.Exit(exit_code(error)) from error


def new_app(**options: Any) -> typer.Typer:
    """An empty app in our manner."""
    return typer.Typer(
        no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich", **options
    )
