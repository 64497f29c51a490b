"""What an operator sees of a gateway: probes, metrics, limits, persisted documents, and how it ends."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from starforge.api.transport.limits import TransportLimits
from starforge.api.transport.persisted import id_of
from tests.integration.gateway import PATIENCE_S, TOKEN, Gateway, Platform, Refused, idle_platform

HEADERS = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    cache = tmp_path_factory.getbasetemp() / "runner"
    with idle_platform(tmp_path_factory.mktemp("platform"), cache) as platform:
        yield platform


@pytest.fixture(scope="module")
def gateway(there: Platform) -> Iterator[Gateway]:
    with there.gateway() as running:
        yield running


def at(gateway: Gateway, path: str) -> httpx.Response:
    return httpx.get(gateway.url.replace("/graphql", path), timeout=PATIENCE_S)


def metrics(gateway: Gateway) -> dict[str, float]:
    text = at(gateway, "/metrics").text
    return {name: float(value) for name, value in re.findall(r"^([a-z_]+(?:\{[^}]*\})?) (\S+)$", text, re.MULTILINE)}


def test_it_is_alive_and_ready(gateway: Gateway) -> None:
    assert at(gateway, "/livez").text == "alive"
    told = at(gateway, "/readyz").json()
    assert (told["ready"], told["problems"]) == (True, [])


def test_it_is_not_ready_while_it_ends(there: Platform) -> None:
    with there.gateway() as ending:
        ending.desk.draining.set()
        answer = at(ending, "/readyz")
        assert (answer.status_code, answer.json()["problems"]) == (503, ["This gateway is about to end."])


def test_metrics_count_what_is_delivered(gateway: Gateway) -> None:
    before = metrics(gateway)
    with (
        gateway.live("subscription { jobs { kind jobId } }") as one,
        gateway.live("subscription { jobs { kind jobId } }") as two,
    ):
        for live in (one, two):
            live.until(lambda step: step["kind"] == "BOOKMARK")
        now = metrics(gateway)
        assert now['starforge_connections{transport="websocket"}'] == 2
        assert (now["starforge_subscriptions"], now["starforge_groups"]) == (2, 1)
        job = gateway.submit()
        for live in (one, two):
            live.until(lambda step: step["jobId"] == job)
    after = metrics(gateway)
    assert after["starforge_deliveries_total"] > before["starforge_deliveries_total"]
    assert after["starforge_delivery_lag_seconds_count"] > before["starforge_delivery_lag_seconds_count"]
    assert after["starforge_requests_in_flight"] == 0


def test_a_busy_gateway_says_so(there: Platform) -> None:
    with there.gateway(TransportLimits(in_flight_requests=0)) as busy:
        answer = httpx.post(busy.url, json={"query": "{ __typename }"}, headers=HEADERS)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert answer.json()["errors"][0]["extensions"]["code"] == "UNAVAILABLE"


def test_points_run_out(there: Platform) -> None:
    settings = {"FORGE_RATE_LIMIT_POINTS": "30", "FORGE_RATE_LIMIT_PER_SECOND": "1"}
    with there.gateway(**settings) as gateway:
        answers = [gateway.answer("{ jobs(first: 10) { nodes { id } } }") for _ in range(4)]
    refused = answers[-1]["errors"][0]["extensions"]
    assert (refused["code"], refused["retryable"]) == ("THROTTLED", True)
    assert refused["retryAfterSeconds"] > 0


def test_documents_by_their_id(there: Platform, tmp_path: Path) -> None:
    text, manifest = "query Mine { viewer { name } }", tmp_path / "manifest.json"
    manifest.write_text(json.dumps({id_of(text): text, "mine": text}))
    settings = {"FORGE_PERSISTED_MANIFEST": str(manifest), "FORGE_PERSISTED_ONLY": "true"}
    with there.gateway(**settings) as gateway:
        for given in (id_of(text), "mine"):
            posted = httpx.post(gateway.url, json={"documentId": given}, headers=HEADERS)
            got = httpx.get(gateway.url, params={"documentId": given}, headers=HEADERS)
            assert posted.json()["data"] == got.json()["data"] == {"viewer": {"name": "bootstrap"}}
        with pytest.raises(Refused) as refused:
            gateway.ask("{ __typename }")
        assert refused.value.code == "PERSISTED_DOCUMENT_NOT_FOUND"


def test_a_table_live_over_server_sent_events(gateway: Gateway) -> None:
    body = {"query": "subscription { jobs { kind jobId job { state } } }"}
    headers = {**HEADERS, "accept": "text/event-stream"}
    with httpx.stream("POST", gateway.url, json=body, headers=headers, timeout=PATIENCE_S) as response:
        lines = response.iter_lines()
        seen = list[str]()
        while not any('"BOOKMARK"' in line for line in seen):
            seen.append(next(lines))
        job = gateway.submit()
        while not any(job in line for line in seen):
            seen.append(next(lines))
    assert "event: next" in seen
