"""`starforge submit`."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from starforge.cli.answers import Json
from starforge.cli.consoles import err_console, out_console, print_json
from starforge.cli.exits import OUTCOMES, ExitCode
from starforge.cli.following import follow_job
from starforge.cli.gateway import Gateway
from starforge.cli.screens import Screen
from starforge.cli.screens.as_json import JsonScreen
from starforge.cli.screens.live import LiveScreen
from starforge.cli.screens.plain import PlainScreen
from starforge.cli.specfile import SpecFile, SpecFileRefused
from starforge.cli.submitting import SubmitRefused, Submitted, submit
from starforge.cli.views.problems import problems_table
from starforge.cli.words import size
from starforge.domain.errors import CodeRefused, Problem


def run(
    directory: Path, *, follow: bool, idempotency_key: str | None, as_json: bool, allow_unsatisfiable: bool = False
) -> ExitCode:
    err = err_console()
    with Gateway.from_settings(os.environ) as gateway:
        try:
            done = submit(
                gateway,
                directory,
                console=err,
                idempotency_key=idempotency_key,
                allow_unsatisfiable=allow_unsatisfiable,
            )
        except (SpecFileRefused, SubmitRefused) as refused:
            return tell_refused(refused.problems, refused.file, err, as_json=as_json)
        except CodeRefused as refused:
            return tell_refused(refused.problems, SpecFile(), err, as_json=as_json)
        if as_json:
            print_json(_submitted(done, follow=follow), indent=None if follow else 2)
        else:
            out_console().print(_sentence(done), soft_wrap=True)
        return follow_to_its_end(gateway, done.job["id"], as_json=as_json) if follow else ExitCode.SUCCEEDED


def screen_for(console: Console, *, as_json: bool) -> Screen:
    if as_json:
        return JsonScreen()
    return LiveScreen(console) if console.is_terminal else PlainScreen()


def follow_to_its_end(gateway: Gateway, job_id: str, *, as_json: bool) -> ExitCode:
    """Shows a job until it has ended; the exit code of its outcome."""
    try:
        with screen_for(out_console(), as_json=as_json) as screen:
            job = asyncio.run(follow_job(gateway, job_id, screen))
    except KeyboardInterrupt:
        err_console().print(
            f"The job goes on. Follow it with `starforge logs {job_id} --follow`, or end it with "
            f"`starforge cancel {job_id}`.",
            soft_wrap=True,
        )
        return ExitCode.INTERRUPTED
    return OUTCOMES[job["state"]]


def _sentence(done: Submitted) -> str:
    code = f"{len(done.code.files)} files, {size(done.code.bytes)}"
    sent = f"sent {code}" if done.sent_bytes else f"{code}, which were there already"
    if done.status == "REPLAYED":
        return f"This was submitted before, as {done.job['id']}."
    return f"Submitted {done.job['name']} as {done.job['id']} ({sent})."


def _submitted(done: Submitted, *, follow: bool) -> Json:
    kind = {"type": "submitted"} if follow else {}
    return {
        **kind,
        "status": done.status,
        "codeDigest": done.code.digest,
        "sentBytes": done.sent_bytes,
        "job": done.job,
    }


def tell_refused(problems: Sequence[Problem], file: SpecFile, err: Console, *, as_json: bool) -> ExitCode:
    """Tells why something is not submitted, with the lines of its file."""
    if as_json:
        print_json({"status": "REFUSED", "userErrors": [_user_error(problem, file) for problem in problems]})
    if len(problems) == 1 and not problems[0].field:
        err.print(problems[0].message, soft_wrap=True)
    else:
        err.print("It can't be submitted as it is:")
        err.print(problems_table(problems, file))
    return ExitCode.REFUSED


def _user_error(problem: Problem, file: SpecFile) -> Json:
    line = None if problem.file else file.line_of(problem.field)
    return {
        "code": problem.code,
        "field": list(problem.field),
        "line": line,
        "message": problem.message,
        "path": problem.file,
        "rule": problem.rule,
    }
