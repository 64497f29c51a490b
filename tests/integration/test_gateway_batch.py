"""submitJobs, cancelJobs and retryJob over a real gateway, as batch tools send them: many, twice, and all at once."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.integration.gateway import Gateway, a_submission, platform

Json = dict[str, Any]
ERRORS = "userErrors { __typename code field message ... on ConflictError { workload { id } } }"
SUBMIT_JOBS = f"""
mutation($items: [SubmitJobInput!]!, $errorPolicy: BatchErrorPolicy! = INDEPENDENT) {{
  submitJobs(input: {{ items: $items, errorPolicy: $errorPolicy }}) {{
    acceptedCount refusedCount {ERRORS}
    outcomes {{ index idempotencyKey status job {{ id name }} {ERRORS} }}
  }}
}}
"""
CANCEL_JOBS = f"""
mutation($filter: JobFilter!, $dryRun: Boolean! = false, $limit: Int! = 100, $maxMatched: Int, $graceSeconds: Int) {{
  cancelJobs(filter: $filter, dryRun: $dryRun, limit: $limit, maxMatched: $maxMatched, graceSeconds: $graceSeconds) {{
    dryRun matchedCount remainingCount gpus {ERRORS}
    outcomes {{ status job {{ id name state }} {ERRORS} }}
  }}
}}
"""
RETRY = f"""
mutation($id: ID!, $key: String, $note: String) {{
  retryJob(id: $id, idempotencyKey: $key, note: $note) {{
    status attempt {{ id number state }} job {{ id revision state attempt }} {ERRORS}
  }}
}}
"""
EVENTS = """
subscription($id: ID!, $after: String!) {
  events(filter: { workloads: [$id] }, after: $after) { kind event { id attempt message count } }
}
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    cache = tmp_path_factory.getbasetemp() / "runner"
    with platform(tmp_path_factory.mktemp("platform"), cache) as there, there.gateway() as running:
        yield running


def submit_jobs(gateway: Gateway, *items: Json, policy: str = "INDEPENDENT") -> Json:
    payload: Json = gateway.ask(SUBMIT_JOBS, items=list(items), errorPolicy=policy)["submitJobs"]
    return payload


def cancel_jobs(gateway: Gateway, **arguments: Any) -> Json:
    payload: Json = gateway.ask(CANCEL_JOBS, **arguments)["cancelJobs"]
    return payload


def retry(gateway: Gateway, job: str, **arguments: Any) -> Json:
    payload: Json = gateway.ask(RETRY, id=job, **arguments)["retryJob"]
    return payload


def count(gateway: Gateway, prefix: str) -> int:
    query = "query($prefix: String!) { jobs(filter: { namePrefix: $prefix }, first: 1) { totalCount } }"
    return int(gateway.ask(query, prefix=prefix)["jobs"]["totalCount"])


def labelled(value: str) -> Json:
    return {"labels": [{"key": "batch", "values": [value]}]}


# --- submitJobs -------------------------------------------------------------------------------------------------------


def test_one_outcome_for_each_item_in_order(gateway: Gateway) -> None:
    wrong = a_submission(pools=[{"name": "main", "series": "h200", "machines": 0, "gpusPerMachine": 1}])
    payload = submit_jobs(gateway, a_submission(name="order-a", key="order-a"), wrong, a_submission(name="order-b"))
    assert (payload["userErrors"], payload["acceptedCount"], payload["refusedCount"]) == ([], 2, 1)
    told = [(one["index"], one["idempotencyKey"], one["status"]) for one in payload["outcomes"]]
    assert told == [(0, "order-a", "CREATED"), (1, None, "REFUSED"), (2, None, "CREATED")]
    assert [one["job"] and one["job"]["name"] for one in payload["outcomes"]] == ["order-a", None, "order-b"]
    [error] = payload["outcomes"][1]["userErrors"]
    assert error["field"] == ["input", "items", "1", "spec", "pools", "0", "machines"]
    assert count(gateway, "order-") == 2


def test_all_or_nothing(gateway: Gateway) -> None:
    items = [a_submission(name="all-a"), a_submission(name="all-b", priority=101)]
    payload = submit_jobs(gateway, *items, policy="ALL_OR_NOTHING")
    assert [one["status"] for one in payload["outcomes"]] == ["NOT_DONE", "REFUSED"]
    assert (payload["acceptedCount"], payload["refusedCount"], count(gateway, "all-")) == (0, 2, 0)


def test_another_body_is_a_conflict_with_the_job_in_the_way(gateway: Gateway) -> None:
    first = submit_jobs(gateway, a_submission(key="body"))["outcomes"][0]["job"]["id"]
    [outcome] = submit_jobs(gateway, a_submission(key="body", name="other"))["outcomes"]
    [error] = outcome["userErrors"]
    assert (error["__typename"], error["code"]) == ("ConflictError", "CONFLICT")
    assert error["field"] == ["input", "items", "0", "idempotencyKey"]
    assert error["workload"] == {"id": first}


@pytest.mark.parametrize("number", [0, 101])
def test_a_batch_of_no_or_too_many_items_is_refused_as_a_whole(gateway: Gateway, number: int) -> None:
    payload = submit_jobs(gateway, *[a_submission(name="whole")] * number)
    assert [(one["code"], one["field"]) for one in payload["userErrors"]] == [("OUT_OF_RANGE", ["input", "items"])]
    assert (payload["outcomes"], payload["refusedCount"], count(gateway, "whole")) == ([], number, 0)


def test_fifty_equal_batches_at_once_are_one(gateway: Gateway) -> None:
    items = [a_submission(name=f"storm-{number}", key=f"batch storm {number}") for number in range(20)]
    with ThreadPoolExecutor(50) as pool:
        payloads = list(pool.map(lambda turn: submit_jobs(gateway, *items[turn % 3 :], *items[: turn % 3]), range(50)))
    jobs = {(one["idempotencyKey"], one["job"]["id"]) for payload in payloads for one in payload["outcomes"]}
    statuses = [one["status"] for payload in payloads for one in payload["outcomes"]]
    print(f"\n50 calls of 20 items: {len(jobs)} jobs, {statuses.count('CREATED')} created")  # noqa: T201  the numbers that were checked
    assert (len(jobs), statuses.count("CREATED"), statuses.count("REPLAYED")) == (20, 20, 980)
    assert count(gateway, "storm-") == 20


# --- cancelJobs -------------------------------------------------------------------------------------------------------


def test_what_was_seen_in_a_dry_run_is_canceled_and_nothing_else(gateway: Gateway) -> None:
    items = [
        a_submission(name=f"sweep-{number}", outcome="FOREVER", labels=[{"key": "batch", "value": "sweep"}])
        for number in range(5)
    ]
    jobs = [one["job"]["id"] for one in submit_jobs(gateway, *items)["outcomes"]]
    other = gateway.submit(name="bystander", outcome="FOREVER")
    for job in jobs:
        gateway.running(job)
    seen = cancel_jobs(gateway, filter=labelled("sweep"), dryRun=True)
    assert [one["status"] for one in seen["outcomes"]] == ["WOULD_CANCEL"] * 5
    assert [one["job"]["id"] for one in seen["outcomes"]] == jobs
    assert (seen["dryRun"], seen["matchedCount"], seen["remainingCount"], seen["gpus"]) == (True, 5, 0, 5)
    done = cancel_jobs(gateway, filter=labelled("sweep"), maxMatched=5, limit=3, graceSeconds=1)
    assert ([one["status"] for one in done["outcomes"]], done["remainingCount"]) == (["REQUESTED"] * 3, 2)
    rest = cancel_jobs(gateway, filter=labelled("sweep"), maxMatched=5, limit=3, graceSeconds=1)
    assert sorted(one["status"] for one in rest["outcomes"])[-2:] == ["REQUESTED"] * 2
    assert {gateway.finished(job)["state"] for job in jobs} == {"CANCELED"}
    query = "query($id: ID!) { job(id: $id) { ended cancellation { note } allowedActions } }"
    assert gateway.ask(query, id=other)["job"]["cancellation"] is None
    assert cancel_jobs(gateway, filter={"ids": [other]}, graceSeconds=1)["matchedCount"] == 1


def test_a_filter_that_means_too_much_is_refused(gateway: Gateway) -> None:
    job = gateway.submit(name="too-wide", outcome="FOREVER")
    for arguments, field in (
        ({"filter": {}}, "filter"),
        ({"filter": {"namePrefix": "too-wide"}, "maxMatched": 0}, "maxMatched"),
    ):
        payload = cancel_jobs(gateway, **arguments)
        assert [(one["code"], one["field"]) for one in payload["userErrors"]] == [("FILTER_TOO_WIDE", [field])]
        assert payload["outcomes"] == []
    assert gateway.ask("query($id: ID!) { job(id: $id) { cancellation { note } } }", id=job)["job"] == {
        "cancellation": None
    }
    cancel_jobs(gateway, filter={"ids": [job]}, graceSeconds=1)


# --- retryJob ---------------------------------------------------------------------------------------------------------


def lines(gateway: Gateway, job: str, attempt: int | None) -> list[str]:
    query = """
    query($id: ID!, $attempt: Int) {
      job(id: $id) { logs(attempt: $attempt, first: 1000) { nodes { text } } logSources(attempt: $attempt) { state } }
    }
    """
    found = gateway.ask(query, id=job, attempt=attempt)["job"]
    assert {source["state"] for source in found["logSources"]} == {"CLOSED"}
    return [line["text"] for line in found["logs"]["nodes"]]


def followed(gateway: Gateway, job: str, attempt: int) -> list[str]:
    """A log as a subscription gives it, live and to its end."""
    query = "subscription($id: ID!, $n: Int) { jobLogs(id: $id, attempt: $n) { end lines { text } } }"
    with gateway.live(query, id=job, n=attempt) as live:
        return [line["text"] for chunk in live for line in chunk["lines"] or ()]


def test_a_failed_job_is_retried_to_its_end(gateway: Gateway) -> None:
    cursor = gateway.ask("{ feed { cursor } }")["feed"]["cursor"]
    job = gateway.submit(outcome="FAIL", seconds=30)
    assert gateway.finished(job)["state"] == "FAILED"
    with gateway.live("subscription($id: ID!) { job(id: $id) { job { attempt state revision } } }", id=job) as live:
        live.until(lambda step: step["job"] is not None)
        payload = retry(gateway, job, key="again", note="a node was bad")
        assert (payload["status"], payload["userErrors"]) == ("CREATED", [])
        assert (payload["attempt"]["number"], payload["job"]["attempt"]) == (2, 2)
        assert followed(gateway, job, 2)
        changes = live.until(lambda step: step["job"] and step["job"]["state"] == "FAILED")
    steps = [change["job"] for change in changes if change["job"]]
    assert {step["attempt"] for step in steps} == {2}
    assert [step["revision"] for step in steps] == sorted({step["revision"] for step in steps})
    query = """
    query($id: ID!) {
      job(id: $id) {
        attempt state allowedActions capsule { digest } history { state attempt }
        attempts { number state outcome exitCode launchedAt logsArchivedAt releasedAt rayJob { name } }
        events(last: 100) { nodes { id attempt message count } }
      }
    }
    """
    found = gateway.ask(query, id=job)["job"]
    path = ["SUBMITTED", "PACKAGING", "LAUNCHING", "PENDING", "RUNNING", "FINISHING", "FAILED"]
    assert [(span["attempt"], span["state"]) for span in found["history"]] == [(n, s) for n in (1, 2) for s in path]
    assert [one["number"] for one in found["attempts"]] == [1, 2]
    assert all(one["logsArchivedAt"] and one["releasedAt"] and one["launchedAt"] for one in found["attempts"])
    assert "RETRY" in found["allowedActions"]
    first, second = lines(gateway, job, 1), lines(gateway, job, 2)
    assert first
    assert second == lines(gateway, job, None) == followed(gateway, job, 2)
    assert first == followed(gateway, job, 1)
    same_events(gateway, job, cursor, found["events"]["nodes"])


def same_events(gateway: Gateway, job: str, cursor: str, stored: list[Json]) -> None:
    """The stream tells each of the stored events, an upserted one with each of its counts, in order and once."""
    newest: dict[str, Json] = {}
    told = 0
    with gateway.live(EVENTS, id=job, after=cursor) as live:
        for step in live.until(lambda step: step["event"] is None):
            event = step["event"]
            if event is None:
                continue
            told += 1
            assert event["id"] not in newest or event["count"] > newest[event["id"]]["count"]
            newest[event["id"]] = event
    print(f"\n{told} changes of {len(newest)} events told, {len(stored)} stored")  # noqa: T201  the numbers that were checked
    assert list(newest.values()) == stored


def test_a_job_that_has_not_ended_stands_in_its_own_way(gateway: Gateway) -> None:
    job = gateway.submit(outcome="FOREVER")
    payload = retry(gateway, job)
    assert (payload["status"], payload["attempt"], payload["job"]["id"]) == ("REFUSED", None, job)
    [error] = payload["userErrors"]
    assert (error["__typename"], error["code"], error["field"]) == ("ConflictError", "WRONG_STATE", ["id"])
    assert error["workload"] == {"id": job}
    actions = gateway.ask("query($id: ID!) { job(id: $id) { allowedActions } }", id=job)["job"]["allowedActions"]
    assert "RETRY" not in actions
    cancel_jobs(gateway, filter={"ids": [job]}, graceSeconds=1)


def test_a_key_that_another_job_holds(gateway: Gateway) -> None:
    jobs = [gateway.submit(outcome="FAIL", seconds=5) for _ in range(2)]
    for job in jobs:
        gateway.finished(job)
    assert retry(gateway, jobs[0], key="held")["status"] == "CREATED"
    [error] = retry(gateway, jobs[1], key="held")["userErrors"]
    assert (error["code"], error["field"], error["workload"]) == ("CONFLICT", ["idempotencyKey"], {"id": jobs[0]})


def test_fifty_at_once_with_one_key_make_one_attempt(gateway: Gateway) -> None:
    job = gateway.submit(outcome="FAIL", seconds=5)
    gateway.finished(job)
    with ThreadPoolExecutor(50) as pool:
        payloads = list(pool.map(lambda _: retry(gateway, job, key="retry storm"), range(50)))
    assert sorted(payload["status"] for payload in payloads) == ["CREATED"] + ["REPLAYED"] * 49
    assert {payload["attempt"]["number"] for payload in payloads} == {2}


def test_a_job_that_is_not_there(gateway: Gateway) -> None:
    payload = retry(gateway, "job-none")
    assert (payload["status"], payload["job"], payload["attempt"]) == ("REFUSED", None, None)
    assert [(one["code"], one["field"]) for one in payload["userErrors"]] == [("NOT_FOUND", ["id"])]
