"""What makes a batch resumable: an id of its own, and for each job a key that only its content decides."""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starforge.cli.batch.file import BATCH_LABEL, Batch, Item
from starforge.domain.errors import Problem, UserMistake
from starforge.domain.jobspec import canonical
from starforge.domain.names import slug

_ID = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_./-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True)
class Planned:
    """A job to submit: what `SubmitJobInput` gets, and where it comes from."""

    item: Item
    given: Mapping[str, Any]

    @property
    def key(self) -> str:
        return str(self.given["idempotencyKey"])

    @property
    def project(self) -> str | None:
        """Where it goes; None for wherever the jobs of the token go that name none."""
        project = self.given["spec"].get("project")
        return None if project is None else str(project)


def batch_id(batch: Batch, code: str, given: str | None) -> str:
    """The id that was given, or that of the file, or one made of all it says; UserMistake if it can't be a label."""
    name = given or batch.name
    if name is None:
        content = hashlib.sha256(canonical([[item.spec for item in batch.items], code])).hexdigest()
        return f"{slug(batch.path.stem, 40)}-{content[:12]}"
    if not _ID.fullmatch(name):
        message = (
            f"{name!r} can't be the id of a batch: it becomes a label, so 1 to 63 letters, digits and -_./ inside."
        )
        raise UserMistake([Problem("INVALID", ("batch",), message)])
    return name


def planned(batch: Batch, code: str, identity: str, **more: Any) -> Sequence[Planned]:
    """The jobs with their keys, and with `more` that each submission says.

    Equal ones are counted, so that each has its own key wherever it stands in the file.
    """
    seen: Counter[str] = Counter()
    plan = []
    for item in batch.items:
        content = hashlib.sha256(canonical([item.spec, code])).hexdigest()[:24]
        key = f"{identity}:{content}:{seen[content]}"
        seen[content] += 1
        labels = [*item.spec.get("labels", ()), {"key": BATCH_LABEL, "value": identity}]
        spec = {**item.spec, "labels": labels}
        plan.append(Planned(item, {"spec": spec, "code": {"digest": code}, "idempotencyKey": key, **more}))
    return plan
