"""The verbs of `starforge token`. They work on the database itself: the schema has no mutations for tokens."""

from typing import Annotated

import typer

from starforge.cli.client_verbs import JSON
from starforge.cli.root import new_app
from starforge.domain.rights import Role

PANEL = "Running StarForge"
HELP = """Make, list and revoke the tokens that people and programs show.

Works on the database of FORGE_DATABASE_URL, or of FORGE_DATA_DIR, which whoever runs this must be able to reach."""


def register(app: typer.Typer) -> None:
    """Adds them to the app."""
    tokens = new_app(help=HELP)
    tokens.command()(create)
    tokens.command("list")(list_tokens)
    tokens.command()(revoke)
    app.add_typer(tokens, name="token", rich_help_panel=PANEL)


def create(
    *,
    name: Annotated[str, typer.Option(help="Name that others are shown beside what it does.")],
    role: Annotated[Role, typer.Option(case_sensitive=False, help="What it is for; each allows what those before do.")],
    project: Annotated[
        list[str] | None, typer.Option(help="A project it sees; may be given again. An ADMIN sees all, without any.")
    ] = None,
    default_project: Annotated[
        str | None, typer.Option(help="Where its jobs go that name none; its project, if it has only one.")
    ] = None,
    expires: Annotated[
        str | None, typer.Option(help="How long it lives: 90m, 12h, 30d or 8w; for ever if not given.", metavar="TIME")
    ] = None,
    json: JSON = False,
) -> None:
    """Make a token and print it, this once: only its hash is kept."""
    from starforge.cli.verbs import token as verb

    raise typer.Exit(
        verb.create(
            name=name, role=role, projects=project or [], project=default_project, expires=expires, as_json=json
        )
    )


def list_tokens(*, json: JSON = False) -> None:
    """List all tokens, expired and revoked ones too."""
    from starforge.cli.verbs import token as verb

    raise typer.Exit(verb.list_tokens(as_json=json))


def revoke(
    token: Annotated[str, typer.Argument(metavar="ID", help="Id of the token, or the token itself.")],
    *,
    json: JSON = False,
) -> None:
    """End a token for good; done again it changes nothing."""
    from starforge.cli.verbs import token as verb

    raise typer.Exit(verb.revoke(token, as_json=json))
