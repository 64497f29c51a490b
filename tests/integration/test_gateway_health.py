"""Health through a real gateway, while parts of StarForge are broken under it."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import make_url

from starforge.api.health import desk
from starforge.domain.actions.check_health import check_health
from starforge.domain.health import ObserverHeard
from tests.contract.store.conftest import new_database
from tests.contract.store.postgres import running_postgres
from tests.integration.gateway import PATIENCE_S, Gateway, Platform, idle_platform

HEALTH = """
{ health {
  status message version checkedAt commands { due parked }
  checks { kind status message } fleets { fleet kind status checks { kind status } }
} }
"""
LIVE = "subscription($after: String) { health(after: $after) { cursor kind health { status checks { kind status } } } }"


@pytest.fixture
def there(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with idle_platform(tmp_path / "platform", tmp_path_factory.getbasetemp() / "runner") as platform:
        yield platform


@contextmanager
def checked(there: Platform) -> Iterator[Callable[[], None]]:
    """Somebody observes, and each call is a tick that checks."""
    parts = there.parts()
    store, now = parts.ports.store, parts.ports.now
    store.renew_observer("simulated", holder="test", at=now(), lease_s=3600)
    store.note_heard("simulated", holder="test", heard=ObserverHeard(now(), 0.1))
    check_health(parts.ports)
    yield lambda: check_health(parts.ports)
    parts.close()


@pytest.fixture
def check(there: Platform) -> Iterator[Callable[[], None]]:
    with checked(there) as tick:
        yield tick


def checks(health: dict[str, Any]) -> dict[str, str]:
    return {one["kind"]: one["status"] for one in health["checks"]}


def ask(gateway: Gateway) -> dict[str, Any]:
    health: dict[str, Any] = gateway.ask(HEALTH)["health"]
    return health


def is_(kind: str, status: str) -> Callable[[dict[str, Any]], bool]:
    return lambda step: bool(step["health"]) and checks(step["health"])[kind] == status


def ready(gateway: Gateway) -> httpx.Response:
    return httpx.get(gateway.url.replace("/graphql", "/readyz"), timeout=PATIENCE_S)


def test_all_is_well(there: Platform, check: Callable[[], None]) -> None:
    with there.gateway() as gateway:
        health = ask(gateway)
        known = ready(gateway).json()
    assert (health["status"], health["message"], health["commands"]) == ("OK", None, {"due": 0, "parked": 0})
    kinds = ("DATABASE", "REDIS", "OBJECT_STORE", "WORKERS", "BEAT")
    assert list(checks(health)) == list(kinds)
    fleet = {"OBSERVER": "OK", "STORAGE": "OK", "TEARDOWN": "OK"}
    assert [(one["fleet"], one["kind"], checks(one)) for one in health["fleets"]] == [("simulated", "SIMULATED", fleet)]
    assert (known["ready"], known["health"]["status"]) == (True, "OK")
    assert known["health"]["checks"] == dict.fromkeys(kinds, "OK")
    assert known["health"]["fleets"]["simulated"]["checks"] == fleet


def test_nothing_was_checked_yet(there: Platform) -> None:
    with there.gateway() as gateway:
        health, known = ask(gateway), ready(gateway)
    assert health["status"] == "UNKNOWN"
    assert [one["status"] for one in health["fleets"]] == ["UNKNOWN"]
    assert known.status_code == 200  # a gateway does its work all the same


def test_an_object_store_that_breaks_and_is_mended_is_told_live(there: Platform, check: Callable[[], None]) -> None:
    objects, aside = there.data / "objects", there.data / "aside"
    with there.gateway() as gateway, gateway.live(LIVE) as live:
        first = live.until(lambda step: step["kind"] == "BOOKMARK")
        assert [step["kind"] for step in first] == ["SNAPSHOT", "BOOKMARK"]
        shutil.move(objects, aside)
        objects.write_text("no directory")
        check()
        live.until(is_("OBJECT_STORE", "DOWN"))
        health = ask(gateway)
        assert (health["status"], health["fleets"][0]["status"], ready(gateway).status_code) == ("DEGRADED", "OK", 200)
        assert str(objects) in health["message"]
        objects.unlink()
        shutil.move(aside, objects)
        check()
        step = live.until(is_("OBJECT_STORE", "OK"))[-1]
        assert (step["kind"], step["health"]["status"]) == ("UPDATED", "OK")
        with gateway.live(LIVE, after=first[0]["cursor"]) as again:
            resumed = next(iter(again))
        assert (resumed["kind"], resumed["health"]) == ("UPDATED", step["health"])


@pytest.mark.parametrize("frozen", [False, True], ids=["stopped", "frozen"])
def test_a_lost_redis_is_told_live_with_nobody_asking(
    there: Platform, check: Callable[[], None], frozen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(desk, "LOOK_EVERY_S", 0.2)
    lose, find = (there.redis.freeze, there.redis.thaw) if frozen else (there.redis.stop, there.redis.start)
    with there.gateway() as gateway, gateway.live(LIVE) as live, gateway.live(LIVE) as other:
        for one in (live, other):
            one.until(lambda step: step["kind"] == "BOOKMARK")
        lose()
        try:
            for one in (live, other):
                one.until(is_("REDIS", "DOWN"))
            health = ask(gateway)
            assert (health["status"], checks(health)["DATABASE"], ready(gateway).status_code) == ("DEGRADED", "OK", 200)
        finally:
            find()
        live.until(is_("REDIS", "OK"))


def test_a_fleet_that_is_down_is_told_of_itself_alone(there: Platform, check: Callable[[], None]) -> None:
    book = there.data / "fast.db"
    with there.gateway() as gateway:
        book.rename(there.data / "aside.db")
        book.mkdir()
        check()
        health = ask(gateway)
    assert (health["status"], health["fleets"][0]["status"]) == ("DOWN", "DOWN")
    assert checks(health)["OBJECT_STORE"] == "OK"


class PostgresPlatform(Platform):
    """A platform on a database of a server that can be lost."""

    database: str

    def settings(self) -> dict[str, str]:
        return {**super().settings(), "FORGE_DATABASE_URL": self.database}


@pytest.fixture
def on_postgres(there: Platform) -> Iterator[PostgresPlatform]:
    with running_postgres() as url:
        platform = PostgresPlatform(there.data, there.redis, there.cache)
        platform.database = new_database(url)
        yield platform


def admin(platform: PostgresPlatform, *statements: str) -> None:
    import psycopg

    url = make_url(platform.database).set(database="postgres").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_database_that_is_away_is_told_with_all_that_was_known(on_postgres: PostgresPlatform) -> None:
    name = make_url(on_postgres.database).database
    with checked(on_postgres), on_postgres.gateway() as gateway:
        before = ask(gateway)
        assert before["status"] == "OK"
        cut = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"  # noqa: S608  our own
        admin(on_postgres, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false", cut)
        health = ask(gateway)
        assert (health["status"], health["checks"][0]["kind"], health["checks"][0]["status"]) == (
            "DOWN", "DATABASE", "DOWN",
        )  # fmt: skip
        assert (health["message"], health["fleets"]) == (health["checks"][0]["message"], before["fleets"])
        away = ready(gateway)
        assert (away.status_code, away.json()["health"]["status"]) == (503, "DOWN")
        admin(on_postgres, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert ask(gateway)["status"] == "OK"
        assert ready(gateway).status_code == 200


def test_a_database_that_hangs_is_told_within_seconds(on_postgres: PostgresPlatform) -> None:
    import psycopg

    with checked(on_postgres), on_postgres.gateway() as gateway:
        url = on_postgres.database
        with psycopg.connect(url, connect_timeout=10) as holder:
            holder.execute("LOCK TABLE observer IN ACCESS EXCLUSIVE MODE")
            health = ask(gateway)
        assert (health["status"], checks(health)["DATABASE"]) == ("DOWN", "DOWN")
        assert health["message"] == "The database gave no answer within 3 seconds."
