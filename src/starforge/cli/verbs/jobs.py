"""`starforge jobs` and `starforge job`."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime

from starforge.cli.answers import Json
from starforge.cli.consoles import err_console, out_console, print_json
from starforge.cli.documents import JOB, JOBS
from starforge.cli.exits import ExitCode
from starforge.cli.gateway import Gateway
from starforge.cli.views.job import job_page
from starforge.cli.views.jobs import jobs_table
from starforge.cli.words import clean, moment
from starforge.domain.errors import NotFound

PAGE = 100


def run_jobs(*, states: Sequence[str], projects: Sequence[str], active: bool, first: int, as_json: bool) -> ExitCode:
    given = {"states": list(states), "projects": list(projects), "active": active}
    with Gateway.from_settings(os.environ) as gateway:
        answer = _jobs(gateway, {name: value for name, value in given.items() if value}, first)
    if as_json:
        print_json({name: answer["jobs"][name] for name in ("nodes", "totalCount", "totalCountExact")})
        return ExitCode.SUCCEEDED
    _show(answer)
    return ExitCode.SUCCEEDED


def run_job(job_id: str, *, as_json: bool) -> ExitCode:
    with Gateway.from_settings(os.environ) as gateway:
        answer = gateway.ask(JOB, id=job_id)
    if answer["job"] is None:
        raise no_job(job_id)
    if as_json:
        print_json(answer["job"])
    else:
        out_console().print(job_page(clean(answer["job"]), _now(answer)))
    return ExitCode.SUCCEEDED


def no_job(job_id: str) -> NotFound:
    return NotFound(f"There is no job {job_id}; `starforge jobs` lists those there are.")


def _jobs(gateway: Gateway, which: Json, first: int) -> Json:
    """The answer with the first `first` jobs in its nodes, however many pages they come in."""
    answer = gateway.ask(JOBS, filter=which, first=min(first, PAGE), after=None)
    nodes, page = answer["jobs"]["nodes"], answer["jobs"]["pageInfo"]
    while page["hasNextPage"] and len(nodes) < first:
        more = gateway.ask(JOBS, filter=which, first=min(first - len(nodes), PAGE), after=page["endCursor"])["jobs"]
        nodes += more["nodes"]
        page = more["pageInfo"]
    return answer


def _show(answer: Json) -> None:
    jobs, total = answer["jobs"]["nodes"], answer["jobs"]["totalCount"]
    if not jobs:
        err_console().print("No jobs. Submit one with `starforge submit DIR`.")
        return
    out_console().print(jobs_table(clean(jobs), _now(answer)))
    if total > len(jobs):
        about = "" if answer["jobs"]["totalCountExact"] else "more than "
        err_console().print(f"The newest {len(jobs)} of {about}{total}; --first shows more.", style="dim")


def _now(answer: Json) -> datetime:
    """The gateway's time, which counts for what is left of a clock."""
    return moment(answer["feed"]["at"]) or datetime.now(UTC)
