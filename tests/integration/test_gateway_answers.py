"""Answers that are kept: true at every moment, whoever wrote last, and never anybody else's."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.integration.gateway import PATIENCE_S, TOKEN, Gateway, idle_platform, platform

JOBS = "query ($first: Int!) { jobs(first: $first) { nodes { id revision state } totalCount } }"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    cache = tmp_path_factory.getbasetemp() / "runner"
    with idle_platform(tmp_path_factory.mktemp("platform"), cache) as there, there.gateway() as running:
        yield running


def post(gateway: Gateway, query: str, token: str = TOKEN, **variables: Any) -> httpx.Response:
    headers = {"authorization": f"Bearer {token}"}
    body = {"query": query, "variables": variables}
    return httpx.post(gateway.url, json=body, headers=headers, timeout=PATIENCE_S)


def test_the_same_question_is_answered_from_memory(gateway: Gateway) -> None:
    gateway.submit()
    gateway.ask(JOBS, first=5)
    answers = gateway.desk.executor.answers
    before = answers.served
    first, again = post(gateway, JOBS, first=5), post(gateway, JOBS, first=5)
    assert answers.served >= before + 2
    assert first.json()["data"] == again.json()["data"] == gateway.ask(JOBS, first=5)
    told = [one.json()["extensions"]["cost"] for one in (first, again)]
    assert all(cost["requested"] > 0 and cost["available"] > 0 for cost in told)
    assert again.headers["content-type"].startswith("application/json")
    assert again.headers["cache-control"] == "no-store"


def test_whoever_wrote_reads_it_at_once(gateway: Gateway) -> None:
    for _ in range(20):
        before = gateway.ask(JOBS, first=1)["jobs"]["totalCount"]
        job = gateway.submit()
        after = gateway.ask(JOBS, first=1)["jobs"]
        assert (after["totalCount"], after["nodes"][0]["id"]) == (before + 1, job)


def test_a_known_request_needs_a_token_like_any_other(gateway: Gateway) -> None:
    for _ in range(3):
        assert post(gateway, JOBS, first=2).status_code == 200
    assert post(gateway, JOBS, token="another", first=2).status_code == 401


def test_what_changes_by_itself_is_never_kept(gateway: Gateway) -> None:
    first, again = (post(gateway, "{ feed { at } }").json()["data"] for _ in range(2))
    assert first != again


def test_a_get_is_spared_what_it_has(gateway: Gateway) -> None:
    gateway.submit()
    query = {"query": "{ jobs(first: 3) { nodes { id } } }"}
    headers = {"authorization": f"Bearer {TOKEN}"}
    first = httpx.get(gateway.url, params=query, headers=headers)
    assert first.headers["cache-control"] == "private, no-cache"
    known = {**headers, "if-none-match": first.headers["etag"]}
    spared = httpx.get(gateway.url, params=query, headers=known)
    assert (spared.status_code, spared.content) == (304, b"")
    gateway.submit()
    changed = httpx.get(gateway.url, params=query, headers=known)
    assert changed.status_code == 200
    assert changed.json()["data"] != first.json()["data"]
    assert changed.headers["etag"] != first.headers["etag"]


def test_requests_on_one_connection_keep_their_order(gateway: Gateway) -> None:
    """Known ones, which the parser itself answers, and others in turn, some cut into pieces."""
    gateway.ask(JOBS, first=7)
    gateway.ask(JOBS, first=7)
    with httpx.Client(headers={"authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE_S) as client:
        for number in range(30):
            body = json.dumps({"query": JOBS, "variables": {"first": 7 if number % 2 else number + 8}}).encode()
            pieces = iter([body[:20], body[20:]]) if number % 3 == 0 else body
            told = client.post(gateway.url, content=pieces, headers={"content-type": "application/json"}).json()
            assert len(told["data"]["jobs"]["nodes"]) <= (7 if number % 2 else number + 8)


def test_a_fleet_at_work_is_shown_as_it_is(tmp_path_factory: pytest.TempPathFactory) -> None:
    cache = tmp_path_factory.getbasetemp() / "runner"
    with platform(tmp_path_factory.mktemp("platform"), cache) as there, there.gateway() as one, there.gateway() as two:
        jobs = [one.submit() for _ in range(5)]
        last = 0
        for job in jobs:
            one.finished(job)
            shown = {node["id"]: node for node in one.ask(JOBS, first=10)["jobs"]["nodes"]}
            assert shown[job]["state"] == "SUCCEEDED"
            assert sum(node["revision"] for node in shown.values()) >= last
            last = sum(node["revision"] for node in shown.values())
        two.finished(jobs[-1])
        assert two.ask(JOBS, first=10) == one.ask(JOBS, first=10)
