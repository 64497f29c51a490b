"""The verbs of `starforge playground`. Their code is imported when they are called, so that each starts fast."""

from typing import Annotated

import typer

from starforge.cli.client_verbs import JSON
from starforge.cli.root import new_app

PANEL = "Playgrounds"
HELP = "Start models to talk to on the GPUs of a fleet, and talk to them."
ID = Annotated[str, typer.Argument(metavar="ID", help="Id of the playground.")]
TIME = "a number and s, m, h or d, for example 4h"


def register(app: typer.Typer) -> None:
    """Adds them to the app."""
    playgrounds = new_app(help=HELP)
    playgrounds.command(no_args_is_help=True)(create)
    playgrounds.command("list")(list_playgrounds)
    for verb in (chat, extend, stop):
        playgrounds.command()(verb)
    app.add_typer(playgrounds, name="playground", rich_help_panel=PANEL)


def create(
    *,
    model: Annotated[str | None, typer.Option(help="A hub name, or a path below the storage root.")] = None,
    series: Annotated[str, typer.Option(help="GPU series.")],
    gpus: Annotated[int, typer.Option(help="How many GPUs.", min=0)] = 1,
    name: Annotated[str | None, typer.Option(help="Name for people; that of the model if not given.")] = None,
    project: Annotated[str | None, typer.Option(help="Project; your own if not given.")] = None,
    fleet: Annotated[str | None, typer.Option(help="Fleet; the first that fits if not given.")] = None,
    image: Annotated[str | None, typer.Option(help="Container image; the fleet's own if not given.")] = None,
    from_job: Annotated[str | None, typer.Option(metavar="ID", help="Job whose result the model is.")] = None,
    ttl: Annotated[str | None, typer.Option(metavar="TIME", help=f"How long it lives: {TIME}.")] = None,
    idle: Annotated[
        str | None, typer.Option(metavar="TIME", help=f"Stop it after so long without a request: {TIME}.")
    ] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option(help="A further argument of `vllm serve`, as --arg=--dtype=half; again for more."),
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="An environment variable; may be given again.")
    ] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Makes it safe to create again: the same key finds the same playground.")
    ] = None,
    wait: Annotated[bool, typer.Option(help="Return when it answers, or when it has failed.")] = True,
    json: JSON = False,
) -> None:
    """Start a playground, and wait until it answers."""
    from starforge.cli.verbs import playground_create as verb

    wanted = {
        "model": model, "series": series, "gpus": gpus, "name": name, "project": project, "fleet": fleet,
        "image": image, "fromJob": from_job, "args": arg, "idempotencyKey": idempotency_key,
    }  # fmt: skip
    raise typer.Exit(verb.run(wanted, ttl=ttl, idle=idle, env=env or (), wait=wait, as_json=json))


def list_playgrounds(
    *,
    every: Annotated[bool, typer.Option("--all", help="Those that have ended, too.")] = False,
    project: Annotated[list[str] | None, typer.Option(help="Only of this project; may be given again.")] = None,
    first: Annotated[int, typer.Option(help="Show at most this many.", min=1, max=10_000)] = 25,
    json: JSON = False,
) -> None:
    """List playgrounds, the newest first."""
    from starforge.cli.verbs import playground as verb

    raise typer.Exit(verb.list_playgrounds(every=every, projects=project or [], first=first, as_json=json))


def chat(
    playground: ID,
    *,
    message: Annotated[
        str | None, typer.Option("--message", "-m", help="Say this alone, print the answer and end.")
    ] = None,
    system: Annotated[str | None, typer.Option(help="What the model is told before all else.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Most tokens of an answer.", min=1)] = None,
    temperature: Annotated[float | None, typer.Option(help="How freely it answers.", min=0)] = None,
) -> None:
    """Talk to a playground. Ctrl-C ends an answer, Ctrl-D ends the talk."""
    from starforge.cli.verbs import playground_chat as verb

    given = {"max_tokens": max_tokens, "temperature": temperature}
    options = {name: value for name, value in given.items() if value is not None}
    raise typer.Exit(verb.run(playground, message=message, system=system, options=options))


def extend(
    playground: ID,
    time: Annotated[str, typer.Argument(metavar="TIME", help=f"How long it lives from now on at least: {TIME}.")],
    *,
    json: JSON = False,
) -> None:
    """Have a playground live longer; never shorter, so that it is safe to repeat."""
    from starforge.cli.verbs import playground as verb

    raise typer.Exit(verb.extend(playground, time, as_json=json))


def stop(playground: ID, *, json: JSON = False) -> None:
    """Stop a playground and free its GPUs; done again it changes nothing."""
    from starforge.cli.verbs import playground as verb

    raise typer.Exit(verb.stop(playground, as_json=json))
