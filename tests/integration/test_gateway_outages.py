"""Parts of a StarForge fail in the middle of subscriptions: nothing is lost, and nothing comes twice."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from tests.integration.gateway import Gateway, Live, Platform, Refused, platform

EVENTS = """
subscription($filter: EventFilter, $after: String) {
  events(filter: $filter, after: $after) { cursor event { id ... on JobStateEvent { jobState } } }
}
"""
JOB = "subscription($id: ID!) { job(id: $id) { cursor job { revision state ended } } }"
LOGS = """
subscription($id: ID!, $after: String) { jobLogs(id: $id, after: $after) { cursor end lines { number text } } }
"""
KEPT = """
query($id: ID!) {
  job(id: $id) { revision logs(first: 1000) { nodes { number text } } events(last: 100) { nodes { id } } }
}
"""


@pytest.fixture
def there(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with platform(tmp_path / "platform", tmp_path_factory.getbasetemp() / "runner") as running:
        yield running


def is_end(step: dict[str, Any]) -> bool:
    return bool(step["event"]) and step["event"].get("jobState") in ("SUCCEEDED", "FAILED", "CANCELED")


def runs(step: dict[str, Any]) -> bool:
    return bool(step["event"]) and step["event"].get("jobState") == "RUNNING"


def ids(steps: list[dict[str, Any]]) -> list[str]:
    return [step["event"]["id"] for step in steps if step["event"]]


def rest(gateway: Gateway, job: str, events: Live, told: list[dict[str, Any]]) -> dict[str, Any]:
    """Read on after the end of a job to the last event that is kept; what is kept."""
    kept: dict[str, Any] = gateway.ask(KEPT, id=job)["job"]
    last = kept["events"]["nodes"][-1]["id"]
    if last not in ids(told):
        told += events.until(lambda step: bool(step["event"]) and step["event"]["id"] == last)
    return kept


def in_the_middle(there: Platform, do: Callable[[], None]) -> None:
    """Follow a job to its end in three ways, with `do` done once it runs, and compare with what is kept."""
    with there.gateway() as gateway, ExitStack() as stack:
        before = gateway.ask("{ feed { cursor } }")["feed"]["cursor"]
        job = gateway.submit(seconds=60)
        which = {"workloads": [job]}
        events = stack.enter_context(gateway.live(EVENTS, filter=which, after=before))
        state = stack.enter_context(gateway.live(JOB, id=job))
        logs = stack.enter_context(gateway.live(LOGS, id=job))
        told = events.until(runs)
        do()
        told += events.until(is_end)
        states = [step["job"] for step in state.until(lambda step: step["job"] and step["job"]["ended"]) if step["job"]]
        lines = [line for chunk in logs for line in chunk["lines"] or []]
        kept = rest(gateway, job, events, told)
    revisions = [one["revision"] for one in states]
    assert revisions == sorted(set(revisions))
    assert revisions[-1] == kept["revision"]
    assert ids(told) == [node["id"] for node in kept["events"]["nodes"]]
    assert lines == kept["logs"]["nodes"]
    assert len(lines) > 10


def test_redis_is_killed_and_started_again(there: Platform) -> None:
    def restart() -> None:
        there.redis.stop()
        there.redis.start()

    in_the_middle(there, restart)


def test_redis_is_killed_for_good(there: Platform) -> None:
    in_the_middle(there, there.redis.stop)


def test_redis_hangs(there: Platform) -> None:
    try:
        in_the_middle(there, there.redis.freeze)
    finally:
        there.redis.thaw()


def test_a_gateway_that_starts_without_redis_answers_and_tells(there: Platform) -> None:
    there.redis.stop()
    in_the_middle(there, lambda: None)


def test_a_client_goes_on_at_a_gateway_that_was_restarted(there: Platform) -> None:
    with there.gateway() as gateway:
        before = gateway.ask("{ feed { cursor } }")["feed"]["cursor"]
        job = gateway.submit(seconds=60)
        which = {"workloads": [job]}
        with gateway.live(EVENTS, filter=which, after=before) as events, gateway.live(LOGS, id=job) as logs:
            told = events.until(runs)
            chunks = logs.until(lambda chunk: bool(chunk["lines"]))
            stopping = there.gateway  # the next one takes the same port
    with stopping() as gateway:
        with gateway.live(EVENTS, filter=which, after=told[-1]["cursor"]) as events:
            told += events.until(is_end)
            kept = rest(gateway, job, events, told)
        with gateway.live(LOGS, id=job, after=chunks[-1]["cursor"]) as logs:
            chunks += list(logs)
    assert ids(told) == [node["id"] for node in kept["events"]["nodes"]]
    assert [line for chunk in chunks for line in chunk["lines"] or []] == kept["logs"]["nodes"]


def test_a_gateway_that_stops_tells_its_clients_to_come_back(there: Platform) -> None:
    with ExitStack() as stack:
        with there.gateway() as gateway:
            live = stack.enter_context(gateway.live(EVENTS))
            assert next(iter(live))["event"] is None
        with pytest.raises(ConnectionClosed) as closed:
            list(live)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1012


def nobody_listens(gateway: Gateway) -> None:
    """Return once no listener is left: each that goes is told of by a change of the hub, so changes are made."""
    with gateway.live("subscription { events { cursor } }") as live:
        steps = iter(live)
        next(steps)
        while gateway.services.hub.listeners > 1:
            gateway.submit(outcome="FOREVER")
            next(steps)


def test_clients_that_vanish_leave_no_listener_behind(there: Platform) -> None:
    with there.gateway() as gateway:
        job = gateway.submit(outcome="FOREVER")
        gateway.running(job)
        queries: list[tuple[str, dict[str, Any]]] = [(EVENTS, {}), (JOB, {"id": job}), (LOGS, {"id": job})]
        for query, variables in queries * 3:
            with gateway.live(query, **variables) as live:
                next(iter(live))
                live.cut()
        for query, variables in queries:
            with gateway.live(query, **variables) as live:
                next(iter(live))
        nobody_listens(gateway)


def test_a_cursor_of_before_what_is_kept_is_expired(there: Platform) -> None:
    with there.gateway() as gateway:
        before = gateway.ask("{ feed { cursor } }")["feed"]["cursor"]
        gateway.finished(gateway.submit())
        store = gateway.parts.ports.store
        store.prune_feed(before=gateway.parts.ports.now())
        for query in (EVENTS, "subscription($after: String) { jobs(after: $after) { cursor } }"):
            with gateway.live(query, after=before) as live, pytest.raises(Refused) as refused:
                next(iter(live))
            assert refused.value.code == "CURSOR_EXPIRED"
        now = gateway.ask("{ feed { cursor } }")["feed"]["cursor"]
        with gateway.live(EVENTS, after=now) as live:
            assert next(iter(live))["event"] is None


def test_two_gateways_tell_the_same(there: Platform, tmp_path: Path) -> None:
    other = Platform(there.data, there.redis, there.cache)
    other._nudge = there._nudge  # type: ignore[method-assign]
    with there.gateway() as first, other.gateway() as second:
        job = first.submit(seconds=40)
        which = {"workloads": [job]}
        before = first.ask("{ feed { cursor } }")["feed"]["cursor"]
        told: list[dict[str, Any]] = []
        cursor, at = before, 0
        while not (told and is_end(told[-1])):
            with (first, second)[at % 2].live(EVENTS, filter=which, after=cursor) as live:
                told += _next_event(live)
            cursor, at = told[-1]["cursor"], at + 1
        kept = [node["id"] for node in second.ask(KEPT, id=job)["job"]["events"]["nodes"]]
    first_told, last_told = kept.index(ids(told)[0]), kept.index(ids(told)[-1])
    assert ids(told) == kept[first_told : last_told + 1]
    assert len(told) > 3


def _next_event(live: Live) -> list[dict[str, Any]]:
    return live.until(lambda step: bool(step["event"]))[-1:]
