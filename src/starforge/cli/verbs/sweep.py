"""`starforge sweep`."""

import os
from collections.abc import Sequence

from starforge.adapters.settings import load_settings
from starforge.adapters.wiring import ports_without_redis
from starforge.cli.answers import Json
from starforge.cli.consoles import err_console, out_console, print_json
from starforge.cli.exits import ExitCode
from starforge.cli.views.sweep import findings_table, would_do
from starforge.domain.actions.sweep import Finding, sweep
from starforge.domain.teardown import Found


def run(*, dry_run: bool, as_json: bool) -> ExitCode:
    with ports_without_redis(load_settings(os.environ)) as ports:
        findings = sweep(ports, dry_run=dry_run)
        fleet = ports.fleet.name
    if as_json:
        print_json({"fleet": fleet, "dryRun": dry_run, "findings": [_as_json(one) for one in findings]})
    elif findings:
        out_console().print(findings_table(findings, dry_run=dry_run))
    else:
        err_console().print(f"Fleet {fleet} and the database agree: nothing is left over, and no job lacks its run.")
    return ExitCode.SUCCEEDED


def _as_json(one: Finding) -> Json:
    return {
        "job": one.run.job,
        "attempt": one.run.attempt,
        "what": one.what,
        "why": one.why,
        "step": one.step.value,
        "does": would_do(one),
        "objects": _objects(one.stray.found if one.stray else ()),
    }


def _objects(found: Sequence[Found]) -> list[Json]:
    return [
        {
            "kind": each.what.object.kind,
            "name": each.what.object.name,
            "namespace": each.what.object.namespace,
            "createdAt": each.created_at.isoformat(timespec="milliseconds"),
            "terminating": each.terminating,
            "finalizers": list(each.what.finalizers),
        }
        for each in found
    ]
