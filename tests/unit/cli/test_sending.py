"""Jobs of a batch that an earlier run has sent already are found by key and project."""

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from starforge.cli.batch.file import Item
from starforge.cli.batch.keys import Planned
from starforge.cli.batch.persistence import Persistence
from starforge.cli.batch.sending import Sent, send
from starforge.cli.documents import FIND_SUBMISSIONS
from starforge.cli.gateway import Gateway

Json = dict[str, Any]


@dataclass
class Forge:
    """A gateway that has jobs by project and key, and puts those that name no project into `project`."""

    jobs: dict[tuple[str, str], str]
    project: str | None = "default"
    asked: list[Json] = field(default_factory=list)

    def ask(self, document: str, **variables: Any) -> Json:
        return self._find(**variables) if document == FIND_SUBMISSIONS else self._submit(**variables)

    def _find(self, *, keys: list[str], projects: list[str] | None) -> Json:
        self.asked.append({"keys": keys, "projects": projects})
        nodes = [
            {"id": id_, "project": project, "idempotencyKey": key}
            for (project, key), id_ in self.jobs.items()
            if key in keys and (projects is None or project in projects)
        ]
        return {"viewer": {"project": self.project}, "jobs": {"nodes": nodes}}

    def _submit(self, *, items: list[Json]) -> Json:
        outcomes = [self._outcome(item) for item in items]
        return {"submitJobs": {"userErrors": [], "outcomes": outcomes}}

    def _outcome(self, item: Json) -> Json:
        place = item["spec"].get("project") or self.project or "", item["idempotencyKey"]
        status = "REPLAYED" if place in self.jobs else "CREATED"
        return {"status": status, "job": {"id": self.jobs.setdefault(place, "new")}, "userErrors": []}


def a_job(key: str, project: str | None) -> Planned:
    spec = {"name": "train", **({"project": project} if project else {})}
    return Planned(Item(0, {}, spec), {"spec": spec, "code": {"digest": "c0de"}, "idempotencyKey": key})


def sent(forge: Forge, *plan: Planned) -> list[tuple[str, str | None]]:
    done: list[Sent] = send(cast("Gateway", forge), plan, Persistence(note=pytest.fail), lambda count: None)
    return [(one.status, one.job) for one in done]


def test_a_job_of_another_project_with_the_same_key_is_none_of_the_batch() -> None:
    forge = Forge({("speech", "a"): "theirs", ("vision", "b"): "ours"})
    assert sent(forge, a_job("a", "vision"), a_job("b", "vision")) == [("CREATED", "new"), ("REPLAYED", "ours")]
    assert forge.asked == [{"keys": ["a", "b"], "projects": ["vision"]}]


def test_a_job_that_names_no_project_is_looked_for_where_the_token_puts_it() -> None:
    forge = Forge({("speech", "a"): "theirs", ("vision", "b"): "ours"}, project="vision")
    assert sent(forge, a_job("a", None), a_job("b", None)) == [("CREATED", "new"), ("REPLAYED", "ours")]


def test_jobs_of_several_projects_are_each_found_in_their_own() -> None:
    forge = Forge({("speech", "a"): "one", ("vision", "b"): "two", ("vision", "a"): "three"})
    assert sent(forge, a_job("a", "speech"), a_job("b", "vision")) == [("REPLAYED", "one"), ("REPLAYED", "two")]
    assert forge.asked == [{"keys": ["a", "b"], "projects": ["speech", "vision"]}]
