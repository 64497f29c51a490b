"""The verbs that ask a gateway. Their code is imported when they are called, so that each starts fast."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

PANEL = "Jobs"
JSON = Annotated[bool, typer.Option("--json", help="Print JSON for scripts, and nothing else, on stdout.")]
DIRECTORY = Annotated[
    Path | None, typer.Argument(help="The code, with starforge.yaml in it.", exists=True, file_okay=False)
]
JOB = Annotated[str, typer.Argument(metavar="ID", help="Id of the job.")]


class State(StrEnum):
    """The JobState of the API, which a test compares it with."""

    SUBMITTED = "SUBMITTED"
    PACKAGING = "PACKAGING"
    LAUNCHING = "LAUNCHING"
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    FINISHING = "FINISHING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELED = "CANCELED"


def register(app: typer.Typer) -> None:
    """Adds them to the app."""
    for verb in (submit, jobs, job, logs, cancel, retry, pack):
        app.command(rich_help_panel=PANEL)(verb)
    app.command(rich_help_panel=PANEL)(fits)
    app.command(rich_help_panel="Health")(capacity)
    app.command(rich_help_panel="Health")(health)


def submit(
    directory: DIRECTORY = None,
    *,
    batch: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Submit the many jobs of this file; run again to go on after a cut."),
    ] = None,
    batch_id: Annotated[
        str | None, typer.Option(help="With --batch: another id, for the same jobs once more; by default the file's.")
    ] = None,
    chunk: Annotated[int, typer.Option(help="With --batch: jobs in one request.", min=1, max=100)] = 100,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show the job and its log until it has ended; exit by its outcome.")
    ] = False,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Makes it safe to submit again: the same key finds the same job.")
    ] = None,
    allow_unsatisfiable: Annotated[
        bool, typer.Option("--allow-unsatisfiable", help="Take it also if no fleet could place it as it is today.")
    ] = False,
    json: JSON = False,
) -> None:
    """Submit the job that a directory holds, or with --batch the many jobs of a file."""
    if batch:
        if idempotency_key:
            raise typer.BadParameter("--batch has a key for each job of its own: leave --idempotency-key out.")
        from starforge.cli.verbs import submit_batch

        wanted = submit_batch.Wanted(batch, directory, batch_id, chunk, allow_unsatisfiable)
        raise typer.Exit(submit_batch.run(wanted, follow=follow, as_json=json))
    if directory is None or batch_id:
        raise typer.BadParameter("Name the directory of the code, or --batch with a file.")
    from starforge.cli.verbs import submit as verb

    raise typer.Exit(
        verb.run(
            directory,
            follow=follow,
            idempotency_key=idempotency_key,
            as_json=json,
            allow_unsatisfiable=allow_unsatisfiable,
        )
    )


def fits(
    spec: Annotated[
        Path, typer.Argument(metavar="SPECFILE", help="A starforge.yaml, or a directory with one in it.", exists=True)
    ],
    *,
    json: JSON = False,
) -> None:
    """Show whether a job would find its GPUs; the exit code is 0 if now, 1 if later, and 2 if it would be refused."""
    from starforge.cli.verbs import fits as verb

    raise typer.Exit(verb.run(spec, as_json=json))


def jobs(
    *,
    state: Annotated[
        list[State] | None, typer.Option(case_sensitive=False, help="Only in this state; may be given again.")
    ] = None,
    project: Annotated[list[str] | None, typer.Option(help="Only of this project; may be given again.")] = None,
    active: Annotated[bool, typer.Option("--active", help="Only those that have not ended.")] = False,
    first: Annotated[int, typer.Option(help="Show at most this many.", min=1, max=10_000)] = 25,
    json: JSON = False,
) -> None:
    """List jobs, the newest first."""
    from starforge.cli.verbs import jobs as verb

    states, projects = [str(one) for one in state or ()], project or []
    raise typer.Exit(verb.run_jobs(states=states, projects=projects, active=active, first=first, as_json=json))


def job(job_id: JOB, *, json: JSON = False) -> None:
    """Show all about one job: where it is, why, and what is left of its clocks."""
    from starforge.cli.verbs import jobs as verb

    raise typer.Exit(verb.run_job(job_id, as_json=json))


def logs(
    job_id: JOB,
    *,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with new lines until the log is closed.")
    ] = False,
    source: Annotated[
        str, typer.Option(metavar="KEY", help="Which log: driver, or one that `starforge job ID` lists.")
    ] = "driver",
    attempt: Annotated[int | None, typer.Option(help="Which attempt; the current one if not given.", min=1)] = None,
    tail: Annotated[int | None, typer.Option(help="Only the last lines, this many.", min=0, max=1000)] = None,
    json: JSON = False,
) -> None:
    """Print the lines of a log; with --json one object a line."""
    from starforge.cli.verbs import logs as verb

    raise typer.Exit(verb.run(verb.Wanted(job_id, source, attempt, tail), follow=follow, as_json=json))


def cancel(
    job_id: Annotated[str | None, typer.Argument(metavar="ID", help="Id of the job.")] = None,
    *,
    label: Annotated[
        list[str] | None, typer.Option(metavar="KEY[=VALUE]", help="Every job with this label; may be given again.")
    ] = None,
    name_prefix: Annotated[str | None, typer.Option(help="Every job whose name starts so.")] = None,
    state: Annotated[
        list[State] | None, typer.Option(case_sensitive=False, help="Every job in this state; may be given again.")
    ] = None,
    project: Annotated[list[str] | None, typer.Option(help="Every job of this project; may be given again.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show which jobs match.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    note: Annotated[str | None, typer.Option(help="Why, for its timeline.")] = None,
    grace: Annotated[
        int | None,
        typer.Option(help="Seconds between SIGTERM and removal; the spec's own if not given.", min=0, max=3600),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Return when it has ended and nothing of it is left.")] = False,
    json: JSON = False,
) -> None:
    """End a job, or every job that matches all of the options. The exit code is 0 also if it had ended before."""
    from starforge.cli.verbs import cancel_many

    which = cancel_many.filter_of(
        label or (), namePrefix=name_prefix, states=[str(one) for one in state or ()], projects=project
    )
    if bool(job_id) == bool(which) or (which and wait) or (job_id and (dry_run or yes)):
        raise typer.BadParameter("Give the id of one job, or options that say which; --wait goes with an id only.")
    if job_id is None:
        raise typer.Exit(cancel_many.run(which, note=note, grace=grace, dry_run=dry_run, yes=yes, as_json=json))
    from starforge.cli.verbs import cancel as verb

    raise typer.Exit(verb.run(job_id, note=note, grace=grace, wait=wait, as_json=json))


def retry(
    job_id: JOB,
    *,
    note: Annotated[str | None, typer.Option(help="Why, for its timeline.")] = None,
    idempotency_key: Annotated[
        str | None, typer.Option(help="Makes it safe to ask again: the same key finds the same attempt.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show the job and its log until it has ended; exit by its outcome.")
    ] = False,
    json: JSON = False,
) -> None:
    """Start the next attempt of a job that has ended, with the same code and spec."""
    from starforge.cli.verbs import retry as verb

    raise typer.Exit(verb.run(job_id, note=note, idempotency_key=idempotency_key, follow=follow, as_json=json))


def pack(
    directory: Annotated[Path, typer.Argument(help="The code.", exists=True, file_okay=False)],
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go, without -o.")] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the zip of the code here.")] = None,
    json: JSON = False,
) -> None:
    """Show what of a directory a job would get, and what is left out by which rule."""
    from starforge.cli.verbs import pack as verb

    if dry_run and output:
        raise typer.BadParameter("--dry-run writes nothing: leave it or --output out.")
    raise typer.Exit(verb.run(directory, output=output, as_json=json))


def capacity(
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Go on with every change, until interrupted.")] = False,
    fleet: Annotated[str | None, typer.Option(metavar="NAME", help="Only of this fleet.")] = None,
    json: JSON = False,
) -> None:
    """Show the GPUs there are: which are used by whom, which are free, which are blocked and why, and what waits."""
    from starforge.cli.verbs import capacity as verb

    raise typer.Exit(verb.run(fleet, watch=watch, as_json=json))


def health(*, json: JSON = False) -> None:
    """Show whether StarForge and its fleets can do their work; the exit code is 0 if all is well, else 1."""
    from starforge.cli.verbs import health as verb

    raise typer.Exit(verb.run(as_json=json))
