"""Every operation that clients will send, as far as our schema has it, answered by a gateway over a simulated world."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.gateway import Gateway, a_submission, platform
from tests.operations import Operation, operations, our_schema

OPERATIONS = {one.name: one for one in operations(our_schema()) if one.document}
KINDS = ("query", "mutation", "subscription")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    cache = tmp_path_factory.getbasetemp() / "runner"
    with platform(tmp_path_factory.mktemp("platform"), cache) as there, there.gateway() as running:
        yield running


@pytest.fixture(scope="module")
def values(gateway: Gateway) -> dict[str, Any]:
    """A value for each variable that an operation may take."""
    old, new = (gateway.submit(name=name, labels=[{"key": "batch", "value": "b1"}]) for name in ("old", "new"))
    for job in (old, new):
        gateway.finished(job)
    query = "query($id: ID!) { feed { cursor } job(id: $id) { pods { id } capsule { codeDigest } } }"
    found = gateway.ask(query, id=old)
    code = {"digest": found["job"]["capsule"]["codeDigest"]}
    return {
        "id": old, "old": old, "new": new, "ids": [old, new], "pod": found["job"]["pods"][0]["id"],
        "after": found["feed"]["cursor"], "since": "2020-01-01T00:00:00Z", "names": ["loss"], "query": "e",
        "keys": ["key"], "key": "key-1", "batch": "b1", "filter": {"active": True}, "seen": 500, "fromLine": 1,
        "input": a_submission(key="key-2"), "items": [a_submission(key="key-3", code=code)],
        "spec": a_submission()["spec"], "code": code | {"transportSha256": "0" * 64, "bytes": 1, "files": 1},
    }  # fmt: skip


def given(operation: Operation, values: dict[str, Any]) -> dict[str, Any]:
    """Variables of an operation; those that are not known here have a default or may be left out."""
    other = {
        "PodPanel": {"id": values["pod"]},
        "PrepareCode": {"input": values["code"]},
        "EventsPage": {"filter": {"minSeverity": "INFO"}},
        "LiveEvents": {"filter": {"minSeverity": "INFO"}},
    }.get(operation.name, {})
    # A cursor of the feed is for subscriptions; the pages of queries and logs have their own.
    without = {"after"} if operation.kind == "query" or operation.name == "FollowLog" else set()
    return {name: values[name] for name in operation.variables if name in values and name not in without} | other


def of_kind(kind: str) -> list[Operation]:
    return [one for one in OPERATIONS.values() if one.kind == kind]


def test_every_kind_of_operation_is_here() -> None:
    assert {kind: bool(of_kind(kind)) for kind in KINDS} == dict.fromkeys(KINDS, True)


@pytest.mark.parametrize("operation", of_kind("query"), ids=lambda one: one.name)
def test_queries_are_answered(gateway: Gateway, values: dict[str, Any], operation: Operation) -> None:
    answer = gateway.ask(operation.document or "", **given(operation, values))
    assert all(value is not None for value in answer.values()), answer


@pytest.mark.parametrize("operation", of_kind("mutation"), ids=lambda one: one.name)
def test_mutations_are_answered(gateway: Gateway, values: dict[str, Any], operation: Operation) -> None:
    (payload,) = gateway.ask(operation.document or "", **given(operation, values)).values()
    assert payload["userErrors"] == []


@pytest.mark.parametrize("operation", of_kind("subscription"), ids=lambda one: one.name)
def test_subscriptions_say_something(gateway: Gateway, values: dict[str, Any], operation: Operation) -> None:
    with gateway.live(operation.document or "", **given(operation, values)) as live:
        gateway.submit(labels=[{"key": "batch", "value": "b1"}])
        (step, *_) = live.until(lambda _: True)
    assert step["cursor"]
    assert step["kind"] in ("SNAPSHOT", "UPDATED", "REMOVED", "BOOKMARK")
