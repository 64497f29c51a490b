"""`starforge cancel`."""

import asyncio
import os

from starforge.cli.answers import Json
from starforge.cli.consoles import err_console, out_console, print_json
from starforge.cli.documents import CANCEL_JOB
from starforge.cli.exits import ExitCode
from starforge.cli.following import follow_job
from starforge.cli.gateway import Gateway
from starforge.cli.screens.silent import SilentScreen
from starforge.cli.verbs.jobs import no_job
from starforge.domain.errors import Problem, UserMistake

_SENTENCES = {
    "REQUESTED": "{id} is being canceled.",
    "ALREADY_REQUESTED": "{id} was being canceled already.",
    "ALREADY_ENDED": "{id} has ended or its outcome is decided: it is {state}. Nothing was done.",
}


def run(job_id: str, *, note: str | None, grace: int | None, wait: bool, as_json: bool) -> ExitCode:
    with Gateway.from_settings(os.environ) as gateway:
        answer = gateway.ask(CANCEL_JOB, id=job_id, note=note, graceSeconds=grace)["cancelJob"]
        refuse(job_id, answer)
        if not as_json:
            sentence = _SENTENCES[answer["status"]].format(id=job_id, state=answer["job"]["state"])
            out_console().print(sentence, soft_wrap=True)
        if wait:
            answer["job"] = asyncio.run(follow_job(gateway, job_id, SilentScreen(err_console()), logs=False))
            if not as_json:
                out_console().print(f"{job_id} is {answer['job']['state']}.", soft_wrap=True)
    if as_json:
        print_json({"status": answer["status"], "job": answer["job"]})
    return ExitCode.SUCCEEDED


def refuse(job_id: str, answer: Json) -> None:
    """Raises what a payload about one job has to be put right, if anything."""
    errors = answer["userErrors"]
    if any(error["code"] == "NOT_FOUND" for error in errors):
        raise no_job(job_id)
    if errors:
        raise UserMistake([Problem(one["code"], tuple(one["field"] or ()), one["message"]) for one in errors])
