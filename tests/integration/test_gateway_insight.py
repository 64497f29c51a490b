"""Counts, search in logs, differences of jobs, and fleets, over a real gateway."""

from collections.abc import Iterator
from typing import Any

import pytest

from starforge.domain.errors import TookTooLong
from tests.integration.gateway import Gateway, platform

COUNTS = """
query($filter: JobFilter, $by: JobCountKey!, $labelKey: String) {
  jobCounts(filter: $filter, by: $by, labelKey: $labelKey) { value count }
  feed { cursor }
}
"""
SEARCH = """
query($id: ID!, $text: String!, $regex: Boolean! = false, $source: String, $first: Int, $after: String) {
  job(id: $id) {
    logSearch(query: $text, regex: $regex, source: $source, first: $first, after: $after) {
      nodes { line { number text } ranges { start end } } edges { cursor } searchedToLine
      pageInfo { hasNextPage endCursor }
    }
    logs(first: 1000) { nodes { number text } }
  }
}
"""
DIFF = """
query($left: ID!, $right: ID!) {
  job(id: $left) {
    diff(other: $right) {
      left { id } right { id } sameCode spec { path left right } filesTruncated
      files { path kind left { bytes } right { bytes executable } }
    }
  }
}
"""
FLEETS = """
query($id: ID!) {
  fleets {
    id name kind isDefault storageShared logicalGpus
    defaults { image cpus memory shmSize deadlines { queueSeconds } cancelGraceSeconds }
  }
  job(id: $id) { webUrl placement { fleet { id name } decidedAt namespace } attempts { placement { decidedAt } } }
}
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    cache = tmp_path_factory.getbasetemp() / "runner"
    with platform(tmp_path_factory.mktemp("platform"), cache) as there, there.gateway() as running:
        yield running


@pytest.fixture(scope="module")
def jobs(gateway: Gateway) -> list[str]:
    ids = []
    for number, outcome in enumerate(("FAIL", "SUCCEED", "SUCCEED")):
        files = {"train.py": f"x = {number}\n", f"only{number}.py": ""}
        code = {"files": [{"path": path, "content": content} for path, content in files.items()]}
        labels = [{"key": "team", "value": "ab"[number % 2]}]
        ids.append(gateway.submit(name=f"run-{number}", labels=labels, outcome=outcome, code=code))
    for one in ids:
        gateway.finished(one)
    return ids


def refused(gateway: Gateway, query: str, field: str, **variables: Any) -> tuple[Any, str]:
    """What the field is and the code of its error."""
    answer = gateway.answer(query, **variables)
    (error,) = answer["errors"]
    found = answer["data"]
    for name in field.split("."):
        found = found[name]
    return found, str(error["extensions"]["code"])


# --- counts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "counted"),
    [
        ({"by": "OUTCOME"}, {"SUCCEEDED": 2, "FAILED": 1}),
        ({"by": "LABEL", "labelKey": "team"}, {"a": 2, "b": 1}),
        ({"by": "SERIES"}, {"h200": 3}),
        ({"by": "STATE", "filter": {"outcomes": ["FAILED"]}}, {"FAILED": 1}),
        ({"by": "PROJECT", "filter": {"projects": ["other"]}}, {}),
    ],
)
@pytest.mark.usefixtures("jobs")
def test_jobs_are_counted(gateway: Gateway, arguments: dict[str, Any], counted: dict[str, int]) -> None:
    found = gateway.ask(COUNTS, **arguments)["jobCounts"]
    assert {one["value"]: one["count"] for one in found} == counted


@pytest.mark.parametrize(
    "arguments", [{"by": "LABEL"}, {"by": "STATE", "labelKey": "team"}, {"by": "LABEL", "labelKey": ""}]
)
def test_a_label_is_named_where_it_is_counted_and_nowhere_else(gateway: Gateway, arguments: dict[str, Any]) -> None:
    assert refused(gateway, COUNTS, "jobCounts", **arguments) == (None, "BAD_USER_INPUT")


def test_counting_that_takes_too_long_blanks_its_own_field_alone(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*_: Any, **__: Any) -> None:
        raise TookTooLong("Counting took too long.")

    monkeypatch.setattr(gateway.parts.ports.store, "job_counts", slow)
    answer = gateway.answer(COUNTS, by="STATE")
    assert answer["data"]["jobCounts"] is None
    assert answer["data"]["feed"]["cursor"]
    (error,) = answer["errors"]
    assert (error["extensions"]["code"], error["extensions"]["retryable"]) == ("TIMEOUT", True)


# --- search -----------------------------------------------------------------------------------------------------------


def test_a_log_is_searched_page_by_page(gateway: Gateway, jobs: list[str]) -> None:
    lines = gateway.ask(SEARCH, id=jobs[1], text="x", first=1)["job"]["logs"]["nodes"]
    expected = [line["number"] for line in lines if "step" in line["text"].lower()]
    assert len(expected) > 3
    seen: list[int] = []
    cursor, more = None, True
    while more:
        found = gateway.ask(SEARCH, id=jobs[1], text="STEP", first=3, after=cursor)["job"]["logSearch"]
        for match in found["nodes"]:
            seen.append(match["line"]["number"])
            for part in match["ranges"]:
                assert match["line"]["text"][part["start"] : part["end"]].lower() == "step"
        assert len(found["nodes"]) == len(found["edges"]) <= 3
        cursor, more = found["pageInfo"]["endCursor"], found["pageInfo"]["hasNextPage"]
    assert seen == expected
    assert found["searchedToLine"] == len(lines)


def test_an_expression_and_a_log_that_is_not_there(gateway: Gateway, jobs: list[str]) -> None:
    found = gateway.ask(SEARCH, id=jobs[1], text=r"step \d+", regex=True, first=100)["job"]["logSearch"]
    assert found["nodes"]
    absent = gateway.ask(SEARCH, id=jobs[1], text="step", source="absent", first=5)["job"]["logSearch"]
    assert absent == {
        "nodes": [], "edges": [], "searchedToLine": 0, "pageInfo": {"hasNextPage": False, "endCursor": None},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"text": "(", "regex": True, "first": 1}, "BAD_USER_INPUT"),
        ({"text": "", "first": 1}, "BAD_USER_INPUT"),
        ({"text": "a"}, "BAD_USER_INPUT"),
        ({"text": "a", "first": 101}, "BAD_USER_INPUT"),
        ({"text": "a", "first": 1, "after": "nonsense"}, "CURSOR_INVALID"),
    ],
)
def test_a_search_that_can_not_be(gateway: Gateway, jobs: list[str], arguments: dict[str, Any], code: str) -> None:
    assert refused(gateway, SEARCH, "job.logSearch", id=jobs[1], **arguments) == (None, code)


# --- differences ------------------------------------------------------------------------------------------------------


def test_jobs_that_differ(gateway: Gateway, jobs: list[str]) -> None:
    diff = gateway.ask(DIFF, left=jobs[0], right=jobs[1])["job"]["diff"]
    assert (diff["left"]["id"], diff["right"]["id"], diff["sameCode"]) == (jobs[0], jobs[1], False)
    changed = {".".join(one["path"]): (one["left"], one["right"]) for one in diff["spec"]}
    assert changed["name"] == ('"run-0"', '"run-1"')
    assert changed["labels.0.value"] == ('"a"', '"b"')
    assert [(one["path"], one["kind"], bool(one["left"]), bool(one["right"])) for one in diff["files"]] == [
        ("only0.py", "REMOVED", True, False), ("only1.py", "ADDED", False, True), ("train.py", "CHANGED", True, True),
    ]  # fmt: skip
    assert diff["filesTruncated"] is False


def test_a_job_does_not_differ_from_itself_and_an_absent_one_is_null(gateway: Gateway, jobs: list[str]) -> None:
    same = gateway.ask(DIFF, left=jobs[0], right=jobs[0])["job"]["diff"]
    assert (same["sameCode"], same["spec"], same["files"], same["filesTruncated"]) == (True, [], [], False)
    for absent in ("job-none", "", "\x00"):
        assert gateway.ask(DIFF, left=jobs[0], right=absent)["job"]["diff"] is None


def test_a_capsule_that_is_gone_blanks_the_files_alone(gateway: Gateway, jobs: list[str]) -> None:
    digest = gateway.ask("query($id: ID!) { job(id: $id) { capsule { digest } } }", id=jobs[2])["job"]["capsule"][
        "digest"
    ]
    gateway.parts.ports.objects.delete(f"capsules/{digest}.zip")
    answer = gateway.answer(DIFF, left=jobs[0], right=jobs[2])
    diff = answer["data"]["job"]["diff"]
    assert (diff["files"], diff["filesTruncated"], bool(diff["spec"])) == (None, False, True)
    assert [error["path"] for error in answer["errors"]] == [["job", "diff", "files"]]


# --- fleets -----------------------------------------------------------------------------------------------------------


def test_fleets_and_where_a_job_was_put(gateway: Gateway, jobs: list[str]) -> None:
    found = gateway.ask(FLEETS, id=jobs[0])
    (fleet,) = found["fleets"]
    assert (fleet["name"], fleet["kind"], fleet["isDefault"], fleet["logicalGpus"]) == (
        "simulated",
        "SIMULATED",
        True,
        True,
    )
    assert fleet["defaults"]["cpus"] >= 1
    job = found["job"]
    assert job["placement"]["fleet"] == {"id": fleet["id"], "name": fleet["name"]}
    assert job["attempts"][0]["placement"]["decidedAt"] == job["placement"]["decidedAt"]
    assert job["webUrl"] is None
    query = "query($id: ID!) { node(id: $id) { ... on Fleet { name } } }"
    assert gateway.ask(query, id=fleet["id"])["node"] == {"name": fleet["name"]}
    assert gateway.ask(query, id="fleet.none")["node"] is None
