"""What a batch came to: as JSON for scripts, as a few lines for people, and as an exit code."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console

from starforge.cli.answers import Json
from starforge.cli.batch.sending import Sent
from starforge.cli.exits import ExitCode
from starforge.cli.specfile import shown
from starforge.cli.words import clean

PROBLEMS_SHOWN = 20


@dataclass(frozen=True)
class Summary:
    identity: str
    code: str
    sent_bytes: int
    sent: Sequence[Sent]

    @property
    def counts(self) -> Mapping[str, int]:
        """Jobs by what became of them: CREATED, REPLAYED, REFUSED."""
        return Counter(one.status for one in self.sent)

    @property
    def jobs(self) -> list[str]:
        return [one.job for one in self.sent if one.job]

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode.SUCCEEDED if len(self.jobs) == len(self.sent) else ExitCode.REFUSED

    def as_json(self) -> Json:
        return {
            "batch": self.identity,
            "codeDigest": self.code,
            "sentBytes": self.sent_bytes,
            "total": len(self.sent),
            "created": self.counts.get("CREATED", 0),
            "replayed": self.counts.get("REPLAYED", 0),
            "refused": len(self.sent) - len(self.jobs),
            "outcomes": [_outcome(one) for one in self.sent],
        }

    def show(self, out: Console, err: Console) -> None:
        counts = self.counts
        known = f", {counts['REPLAYED']} were there already" if counts.get("REPLAYED") else ""
        refused = len(self.sent) - len(self.jobs)
        said = f"{counts.get('CREATED', 0)} of {len(self.sent)} jobs submitted{known}"
        out.print(f"{said}{f', {refused} refused' if refused else ''}. Batch {self.identity}.", soft_wrap=True)
        rows = Counter(_problem(error) for one in self.sent for error in one.errors).most_common()
        for row, count in rows[:PROBLEMS_SHOWN]:
            err.print(f"{count} × {row}", soft_wrap=True)
        if len(rows) > PROBLEMS_SHOWN:
            err.print(f"… and {len(rows) - PROBLEMS_SHOWN} other problems; --json has all.", soft_wrap=True)


def ended_exit_code(ended: Iterable[Json]) -> ExitCode:
    """FAILED if any job failed, else CANCELED if any was canceled."""
    states = {job["state"] for job in ended}
    if "FAILED" in states:
        return ExitCode.FAILED
    return ExitCode.CANCELED if "CANCELED" in states else ExitCode.SUCCEEDED


def _outcome(one: Sent) -> Json:
    errors = [
        {"code": error["code"], "field": list(_field(error)), "message": error["message"]} for error in one.errors
    ]
    return {
        "index": one.planned.item.index,
        "parameters": dict(one.planned.item.parameters),
        "name": one.planned.item.spec["name"],
        "idempotencyKey": one.planned.key,
        "status": one.status,
        "job": one.job,
        "userErrors": errors,
    }


def _field(error: Json) -> Sequence[str]:
    """The path within the item: `input.items.3.spec.name` as ("spec", "name")."""
    path = list(error["field"] or ())
    return path[3:] if path[:2] == ["input", "items"] else path


def _problem(error: Json) -> str:
    path = list(_field(error))
    where = shown(path[1:] if path[:1] == ["spec"] else path)
    return str(clean(f"{where}: {error['message']}" if where else error["message"]))
