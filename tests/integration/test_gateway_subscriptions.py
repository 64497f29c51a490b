"""Jobs and events live, over a real gateway and real sockets."""

from collections.abc import Iterator

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
