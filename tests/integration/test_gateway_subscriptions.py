"""Jobs and events live, over a real gateway and real sockets."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.gateway import Gateway, Refused, platform

JOB = """
subscription($id: ID!, $after: String) {
  job(id: $id, after: $after) { cursor kind at jobId aspects job { id revision state ended updatedAt } }
}
"""
EVENTS = """
subscription($filter: EventFilter, $after: String) {
  events(filter: $filter, after: $after) {
    cursor kind
    event { id type message workload { id } ... on JobStateEvent { jobState jobStateBefore } }
  }
}
"""
JOBS = """
subscription($filter: JobFilter, $after: String) {
  jobs(filter: $filter, after: $after) { cursor kind jobId job { id revision state ended } }
}
"""
HISTORY = """
query($id: ID!) {
  job(id: $id) {
    revision state history { state }
    events(first: 100, filter: { types: [STATE_CHANGED] }) { nodes { id ... on JobStateEvent { jobState } } }
  }
}
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    cache = tmp_path_factory.getbasetemp() / "runner"
    with platform(tmp_path_factory.mktemp("platform"), cache) as there, there.gateway() as running:
        yield running


@pytest.fixture(scope="module")
def failed(gateway: Gateway) -> tuple[str, str]:
    """A cursor, and a job that came after it and failed."""
    before = feed_cursor(gateway)
    job = gateway.submit(outcome="FAIL")
    gateway.finished(job)
    return before, job


def feed_cursor(gateway: Gateway) -> str:
    return str(gateway.ask("{ feed { cursor } }")["feed"]["cursor"])


def test_job_starts_with_a_snapshot_and_its_revisions_rise_to_the_last(gateway: Gateway) -> None:
    job = gateway.submit()
    with gateway.live(JOB, id=job) as live:
        steps = live.until(lambda step: step["job"] and step["job"]["ended"])
    assert [step["kind"] for step in steps[:2]] == ["SNAPSHOT", "BOOKMARK"]
    assert {step["kind"] for step in steps[2:]} <= {"UPDATED", "BOOKMARK"}
    revisions = [step["job"]["revision"] for step in steps if step["job"]]
    assert revisions == sorted(set(revisions))
    assert {step["jobId"] for step in steps if step["job"]} == {job}
    assert all(step["aspects"] for step in steps if step["kind"] == "UPDATED")
    assert gateway.ask(HISTORY, id=job)["job"]["revision"] == revisions[-1]


def states(steps: list[dict[str, Any]]) -> list[str]:
    return [step["event"]["jobState"] for step in steps if step["event"] and "jobState" in step["event"]]


def is_end(step: dict[str, Any]) -> bool:
    return bool(step["event"]) and step["event"].get("jobState") in ("SUCCEEDED", "FAILED", "CANCELED")


def test_events_tells_every_state_once_and_in_order_from_a_cursor_read_before_the_submit(gateway: Gateway) -> None:
    before = feed_cursor(gateway)
    job = gateway.submit()
    which = {"workloads": [job]}
    with gateway.live(EVENTS, filter=which, after=before) as live:
        steps = live.until(is_end)
    told = states(steps)
    assert told == [span["state"] for span in gateway.ask(HISTORY, id=job)["job"]["history"]]
    assert told[0] == "SUBMITTED"
    assert told[-1] == "SUCCEEDED"
    assert len(set(told)) == len(told)
    ids = [step["event"]["id"] for step in steps if step["event"]]
    for index, step in enumerate(steps[:-1]):
        if step["event"] and index % 3 == 0:
            with gateway.live(EVENTS, filter=which, after=step["cursor"]) as resumed:
                again = [one["event"]["id"] for one in resumed.until(is_end) if one["event"]]
            assert again == ids[-len(again) :]
            assert len(again) == len([one for one in steps[index + 1 :] if one["event"]])


def test_events_without_a_cursor_begins_now_and_filters(gateway: Gateway) -> None:
    old = gateway.submit()
    gateway.finished(old)
    which = {"types": ["STATE_CHANGED"], "projects": ["default"]}
    with gateway.live(EVENTS, filter=which) as live:
        assert next(iter(live))["kind"] == "BOOKMARK"
        job = gateway.submit(outcome="FAIL")
        steps = live.until(is_end)
    assert {step["event"]["type"] for step in steps if step["event"]} == {"STATE_CHANGED"}
    assert old not in {step["event"]["workload"]["id"] for step in steps if step["event"]}
    assert states(steps)[-1] == "FAILED"
    kept = gateway.ask(HISTORY, id=job)["job"]
    assert [node["id"] for node in kept["events"]["nodes"]] == [step["event"]["id"] for step in steps if step["event"]]
    assert [node["jobState"] for node in kept["events"]["nodes"]] == [span["state"] for span in kept["history"]]


def test_jobs_tells_who_comes_into_a_filter_and_who_leaves_it(gateway: Gateway) -> None:
    forever, label = (
        gateway.submit(outcome="FOREVER", labels=[{"key": "set", "value": "leave"}]),
        {"key": "set", "values": ["leave"]},
    )
    gateway.running(forever)
    which = {"active": True, "labels": [label]}
    with gateway.live(JOBS, filter=which) as live:
        first = live.until(lambda step: step["kind"] == "BOOKMARK")
        assert [(step["kind"], step["jobId"]) for step in first] == [("SNAPSHOT", forever), ("BOOKMARK", None)]
        other = gateway.submit(labels=[{"key": "set", "value": "other"}])
        short = gateway.submit(labels=[{"key": "set", "value": "leave"}])
        steps = live.until(lambda step: step["kind"] == "REMOVED" and step["jobId"] == short)
    assert steps[-1]["job"]["ended"]
    assert {step["jobId"] for step in steps if step["kind"] == "UPDATED"} <= {forever, short}
    assert {step["kind"] for step in steps if step["jobId"] == other} <= {"REMOVED"}
    middle = next(step for step in steps if step["jobId"] == short)
    with gateway.live(JOBS, filter=which, after=middle["cursor"]) as live:
        resumed = live.until(lambda step: step["kind"] == "REMOVED" and step["jobId"] == short)
    assert "SNAPSHOT" not in {step["kind"] for step in resumed}
    revisions = [step["job"]["revision"] for step in resumed if step["jobId"] == short]
    assert revisions == sorted(set(revisions))
    assert revisions[-1] == steps[-1]["job"]["revision"]
    assert revisions[0] > middle["job"]["revision"]
    gateway.ask("mutation($id: ID!) { cancelJob(id: $id, graceSeconds: 0) { status } }", id=forever)
    assert gateway.finished(forever)["outcome"] == "CANCELED"


def test_a_snapshot_that_was_cut_off_begins_again(gateway: Gateway) -> None:
    label = {"key": "set", "value": "cut"}
    jobs = {gateway.submit(labels=[label]) for _ in range(3)}
    for job in jobs:
        gateway.finished(job)
    which = {"labels": [{"key": "set", "values": ["cut"]}]}
    with gateway.live(JOBS, filter=which) as live:
        snapshot = [step for step in live.until(lambda step: step["kind"] == "BOOKMARK") if step["job"]]
    assert {step["jobId"] for step in snapshot} == jobs
    for cut_after, step in enumerate(snapshot, start=1):
        with gateway.live(JOBS, filter=which, after=step["cursor"]) as live:
            again = live.until(lambda step: step["kind"] == "BOOKMARK")
        held = {step["jobId"] for step in snapshot[:cut_after]} | {step["jobId"] for step in again if step["jobId"]}
        assert held == jobs


@pytest.mark.parametrize(
    ("after", "code"),
    [
        ("nonsense", "CURSOR_INVALID"),
        ("", "CURSOR_INVALID"),
        ("[" * 100_000, "CURSOR_INVALID"),
        ("é", "CURSOR_INVALID"),
    ],
)
@pytest.mark.parametrize("query", [EVENTS, JOBS])
def test_a_cursor_that_is_none_ends_the_subscription(gateway: Gateway, query: str, after: str, code: str) -> None:
    with gateway.live(query, after=after) as live, pytest.raises(Refused) as refused:
        next(iter(live))
    assert refused.value.code == code


def test_a_job_that_is_not_there_ends_the_subscription(gateway: Gateway) -> None:
    with gateway.live(JOB, id="job-none") as live, pytest.raises(Refused) as refused:
        next(iter(live))
    assert refused.value.code == "NOT_FOUND"


def test_links_are_not_given_out_in_subscriptions(gateway: Gateway) -> None:
    job = gateway.submit()
    gateway.finished(job)
    query = "subscription($id: ID!) { job(id: $id) { job { capsule { digest download { url } } } } }"
    with gateway.live(query, id=job) as live, pytest.raises(Refused) as refused:
        next(iter(live))
    assert refused.value.code == "BAD_USER_INPUT"
    assert "secret" in refused.value.errors[0]["message"]


def test_a_filter_that_is_wrong_ends_the_subscription(gateway: Gateway) -> None:
    with gateway.live(JOBS, filter={"ids": ["x"] * 101}) as live, pytest.raises(Refused) as refused:
        next(iter(live))
    assert refused.value.code == "BAD_USER_INPUT"


@pytest.mark.parametrize(
    "which",
    [
        {},
        {"types": ["POD_CHANGED", "KUBERNETES"]},
        {"types": []},
        {"minSeverity": "WARNING"},
        {"minSeverity": "ERROR"},
        {"attempt": 1},
        {"attempt": 2},
        {"fleets": ["simulated"]},
        {"fleets": ["moon"]},
        {"projects": ["default"]},
        {"projects": ["other"]},
        {"kubernetesReasons": ["Scheduled", "Pulled"]},
        {"since": "2000-01-01T00:00:00Z", "until": "2100-01-01T00:00:00Z"},
        {"since": "2100-01-01T00:00:00Z"},
        {"until": "2000-01-01T00:00:00Z"},
    ],
)
def test_events_live_and_kept_agree_on_every_filter(gateway: Gateway, failed: tuple[str, str], which: Any) -> None:
    before, job = failed
    which = {"workloads": [job], **which}
    query = "query($filter: EventFilter) { events(filter: $filter, first: 100) { nodes { id fleet } } }"
    nodes = gateway.ask(query, filter=which)["events"]["nodes"]
    kept = {node["id"] for node in nodes}
    assert {node["fleet"] for node in nodes} <= {"simulated"}
    with gateway.live(EVENTS, filter=which, after=before) as live:
        steps = live.until(lambda step: step["kind"] == "BOOKMARK")
    assert {step["event"]["id"] for step in steps if step["event"]} == kept
    assert len(kept) < 100
