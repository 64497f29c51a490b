"""`starforge submit --batch`."""

import asyncio
import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from starforge.adapters.packing.packer import CapsulePacker
from starforge.cli.answers import Json
from starforge.cli.batch.bars import following_bar, sending_bar
from starforge.cli.batch.file import Batch, read_batch
from starforge.cli.batch.following import follow_batch
from starforge.cli.batch.keys import batch_id, planned
from starforge.cli.batch.persistence import Persistence
from starforge.cli.batch.sending import send
from starforge.cli.batch.summary import Summary, ended_exit_code
from starforge.cli.consoles import err_console, out_console, print_json
from starforge.cli.exits import ExitCode
from starforge.cli.gateway import Gateway
from starforge.cli.specfile import SpecFile, SpecFileRefused
from starforge.cli.submitting import SubmitRefused, again, allowing, send_code
from starforge.cli.verbs.submit import tell_refused
from starforge.cli.waiting import patiently
from starforge.domain.errors import CodeRefused


@dataclass(frozen=True)
class Wanted:
    """The batch file, the directory of the code and the id if they are not the file's, jobs in one request, and whether
    jobs are taken that no fleet could place today."""

    path: Path
    code: Path | None
    identity: str | None
    chunk: int
    allow_unsatisfiable: bool = False


def run(wanted: Wanted, *, follow: bool, as_json: bool) -> ExitCode:
    """Submits what is not there yet, and waits for the end of all of it if asked to."""
    err = err_console()
    try:
        batch = read_batch(wanted.path, wanted.code)
        with Gateway.from_settings(os.environ) as gateway:
            summary = _submitted(gateway, batch, wanted, err)
            _tell(summary, err, follow=follow, as_json=as_json)
            if not (follow and summary.jobs):
                return summary.exit_code
            ended = _followed(gateway, summary, err, as_json=as_json)
    except (SpecFileRefused, SubmitRefused) as refused:
        return tell_refused(refused.problems, refused.file, err, as_json=as_json)
    except CodeRefused as refused:
        return tell_refused(refused.problems, SpecFile(), err, as_json=as_json)
    except KeyboardInterrupt:
        err.print("Interrupted. Run the same again to go on where it was: no job is made twice.", soft_wrap=True)
        return ExitCode.INTERRUPTED
    return ended or summary.exit_code


def _submitted(gateway: Gateway, batch: Batch, wanted: Wanted, err: Console) -> Summary:
    with tempfile.TemporaryDirectory(prefix="starforge-", ignore_cleanup_errors=True) as scratch:
        packer = CapsulePacker(Path(scratch))
        code = patiently(err, "Packing", lambda: packer.pack_directory(batch.code, Path(scratch), but=batch.path))
        identity = batch_id(batch, code.digest, wanted.identity)
        sent_bytes = again(lambda: send_code(gateway, code, SpecFile(), err))
    plan = planned(batch, code.digest, identity, **allowing(wanted.allow_unsatisfiable))
    with sending_bar(err, len(plan)) as told:
        sent = send(gateway, plan, Persistence(_note(err)), told, chunk=wanted.chunk)
    return Summary(identity, code.digest, sent_bytes, sent)


def _note(err: Console) -> Callable[[str], None]:
    return lambda text: err.print(text, style="yellow", soft_wrap=True)


def _tell(summary: Summary, err: Console, *, follow: bool, as_json: bool) -> None:
    if not as_json:
        summary.show(out_console(), err)
    elif follow:
        print_json({"type": "submitted", **summary.as_json()}, indent=None)
    else:
        print_json(summary.as_json())


def _followed(gateway: Gateway, summary: Summary, err: Console, *, as_json: bool) -> ExitCode:
    with _screen(err, len(summary.jobs), as_json=as_json) as told:
        ended = asyncio.run(follow_batch(gateway, summary.identity, summary.jobs, told, _note(err)))
    counts = {
        state: sum(job["state"] == state for job in ended.values()) for state in ("SUCCEEDED", "FAILED", "CANCELED")
    }
    if as_json:
        print_json(
            {"type": "ended", "batch": summary.identity, **{k.lower(): n for k, n in counts.items()}}, indent=None
        )
    else:
        said = ", ".join(f"{count} {state}" for state, count in counts.items() if count)
        out_console().print(f"All {len(ended)} jobs have ended: {said}.", soft_wrap=True)
    return ended_exit_code(ended.values())


def _screen(err: Console, total: int, *, as_json: bool) -> AbstractContextManager[Callable[[Json], None]]:
    if as_json:
        return nullcontext(lambda job: print_json({"type": "job", "job": job}, indent=None) if job["ended"] else None)
    return following_bar(err, total)
