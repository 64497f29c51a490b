"""The verbs that run StarForge itself. Their code is imported when they are called, as it is slow to start."""

import os
from pathlib import Path
from typing import Annotated

import typer

from starforge.cli.client_verbs import JSON

DATA = Annotated[Path, typer.Option(help="Directory for all that is kept.", file_okay=False)]
PORT = Annotated[int, typer.Option(help="Port of the gateway; 0 for a free one.", min=0, max=65535)]
PANEL = "Running StarForge"


def register(app: typer.Typer) -> None:
    for verb in (demo, dev, api, worker, watch, sweep, persist):
        app.command(rich_help_panel=PANEL)(verb)


def dev(
    *,
    port: PORT = 8000,
    data: DATA = Path(".starforge"),
    simulate: Annotated[
        int | None, typer.Option(help="Run a simulated fleet that starts with this many jobs.", min=0, max=10_000)
    ] = None,
) -> None:
    """Run every part on this machine, on embedded servers."""
    from starforge.cli import dev as module

    module.dev(port=port, data=data, simulate=simulate)


def api(
    *,
    dev: Annotated[bool, typer.Option("--dev", help="Let this machine in without a token.")] = False,
) -> None:
    """Run the gateway."""
    from starforge.cli import serve

    serve.api(dev=dev)


def worker(
    *,
    concurrency: Annotated[int, typer.Option(help="Commands done at the same time.", min=1)] = os.cpu_count() or 1,
    beat: Annotated[bool, typer.Option("--beat", help="Only send the ticks on which workers look again.")] = False,
) -> None:
    """Run a task worker, or the beat."""
    from starforge.cli import serve

    serve.worker(concurrency=concurrency, beat=beat)


def watch() -> None:
    """Run the observer of the fleet."""
    from starforge.cli import serve

    serve.watch()


def sweep(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    json: JSON = False,
) -> None:
    """Remove what is left in the fleet of no job, and have jobs judged that lost their run.

    Workers do it every two minutes. This works on the database and the fleet of the FORGE_* settings themselves, with
    no gateway, worker or Redis.
    """
    from starforge.cli.verbs import sweep as verb

    raise typer.Exit(verb.run(dry_run=dry_run, as_json=json))


def demo(
    *,
    keep: Annotated[bool, typer.Option("--keep", help="Leave everything running afterwards, until Ctrl-C.")] = False,
    example: Annotated[str, typer.Option(help="Name of an example, or a directory.")] = "digits",
    port: PORT = 0,
    data: Annotated[
        Path | None, typer.Option(help="Directory for all that is kept; gone afterwards if not given.")
    ] = None,
) -> None:
    """Run StarForge on this machine, train an example on it, and stop it again."""
    from starforge.cli.demo import demo as show

    raise typer.Exit(show(example=example, keep=keep, port=port, data=data))


def persist(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="GraphQL operations and fragments.", exists=True, dir_okay=False),
    ],
    *,
    by_name: Annotated[
        bool, typer.Option("--by-name", help="Use names of operations as ids, not hashes of documents.")
    ] = False,
) -> None:
    """Print a manifest for FORGE_PERSISTED_MANIFEST: a document for each operation, with its fragments."""
    from starforge.cli.verbs import persist as verb

    raise typer.Exit(verb.run(files, by_name=by_name))
