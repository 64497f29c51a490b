"""What a sweep found, as people read it."""

from collections.abc import Mapping, Sequence

from rich.table import Table

from starforge.cli.words import clean
from starforge.domain.actions.sweep import Finding, Step

_DOES: Mapping[Step, str] = {
    Step.REMOVE: "remove it",
    Step.NOTE: "remove it if the next sweep finds it too",
    Step.GOING: "nothing: it is on its way out",
    Step.HELD: "nothing: a person has to act",
    Step.ASK: "ask for it, and end the job if it is gone",
}


def would_do(one: Finding) -> str:
    return _DOES[one.step]


def findings_table(findings: Sequence[Finding], *, dry_run: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold dim", expand=False)
    for name in ("WHAT", "RUN", "WHY", "WOULD DO" if dry_run else "DOES"):
        table.add_column(name, no_wrap=name == "RUN", overflow="fold")
    for one in findings:
        table.add_row(clean(one.what), clean(str(one.run)), clean(one.why), would_do(one))
    return table
