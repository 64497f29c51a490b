"""Keys that rotate, and an issuer that is down."""

import asyncio
import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from starforge.adapters.oidc import Issuer, OidcConfig, fetch
from starforge.adapters.oidc.keys import ASK_EVERY_S, FRESH_S
from starforge.domain.errors import IssuerUnavailable, Unauthenticated
from starforge.domain.rights import Role
from tests.contract.identities.issuer_server import AUDIENCE, DISCOVERY, PATIENCE_S, IssuerServer, a_key

pytestmark = pytest.mark.anyio
SPARE = a_key("ES256", "two")


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class World:
    def __init__(self, server: IssuerServer, **options: Any) -> None:
        self.clock = Clock()
        config = OidcConfig(server.url, AUDIENCE, {role.value: role for role in Role}, **options)
        self.issuer = Issuer(config, now=lambda: datetime.now(UTC), clock=self.clock)

    async def name(self, token: str) -> str:
        return (await self.issuer.caller(token)).actor.name


async def test_a_new_key_is_asked_for_once(server: IssuerServer) -> None:
    world = World(server)
    assert await world.name(server.sign()) == "ann"
    world.clock.seconds += ASK_EVERY_S
    server.publish(SPARE)
    assert await world.name(server.sign(SPARE)) == "ann"
    assert server.asked == [DISCOVERY, "/keys", "/keys"]
    for _ in range(5):
        assert await world.name(server.sign(SPARE)) == "ann"
    assert len(server.asked) == 3


async def test_made_up_keys_do_not_flood_the_issuer(server: IssuerServer) -> None:
    world = World(server)
    for number in range(20):
        with pytest.raises(Unauthenticated, match="key that its issuer does not show"):
            await world.name(server.sign(header={"kid": f"made-up-{number}"}))
    assert server.asked == [DISCOVERY, "/keys"]
    assert await world.name(server.sign()) == "ann"


async def test_many_who_come_at_once_ask_once(server: IssuerServer) -> None:
    world, token = World(server), server.sign()
    server.hang.clear()
    entering = [asyncio.create_task(world.name(token)) for _ in range(50)]
    assert await asyncio.to_thread(server.reached.wait, PATIENCE_S)
    entering[0].cancel()
    server.hang.set()
    done = await asyncio.gather(*entering, return_exceptions=True)
    assert isinstance(done[0], asyncio.CancelledError)
    assert set(done[1:]) == {"ann"}
    assert server.asked == [DISCOVERY, "/keys"]


async def test_a_withdrawn_key_is_forgotten(server: IssuerServer) -> None:
    world, old = World(server), server.sign()
    await world.name(old)
    server.publish(SPARE)
    world.clock.seconds += FRESH_S - 1
    await world.name(old)
    world.clock.seconds += 1
    with pytest.raises(Unauthenticated, match="does not show"):
        await world.name(old)


async def test_known_keys_stay_while_the_issuer_is_down(server: IssuerServer, caplog: pytest.LogCaptureFixture) -> None:
    world = World(server)
    assert await world.name(server.sign()) == "ann"
    server.stop()
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            world.clock.seconds += FRESH_S
            assert await world.name(server.sign()) == "ann"
    assert caplog.text.count("Keys that are known stay.") == 3
    with pytest.raises(IssuerUnavailable, match="can't be reached"):  # nobody knows whether it is a good one
        await world.name(server.sign(SPARE))
    server.start()
    server.publish(SPARE)
    world.clock.seconds += ASK_EVERY_S
    assert await world.name(server.sign(SPARE)) == "ann"


async def test_an_issuer_that_was_never_there_is_told_as_unavailable(server: IssuerServer) -> None:
    world, token = World(server), server.sign()
    server.stop()
    for _ in range(3):
        with pytest.raises(IssuerUnavailable) as caught:
            await world.name(token)
        assert caught.value.retryable
        assert token not in str(caught.value)
    server.start()
    world.clock.seconds += ASK_EVERY_S
    assert await world.name(token) == "ann"


@pytest.mark.parametrize(
    ("path", "page", "words"),
    [
        ("/keys", 500, "answered with status 500"),
        ("/keys", 404, "answered with status 404"),
        ("/keys", 302, "answered with status 302"),
        ("/keys", b"<html>", "did not answer with JSON"),
        ("/keys", b"[]", "did not answer with a JSON object"),
        ("/keys", b'{"keys": "' + b"x" * fetch.BYTES_MAX + b'"}', "answered with more than 256 KiB"),
        ("/keys", {"keys": {}}, "no key that can be used"),
        (DISCOVERY, {"issuer": "http://elsewhere", "jwks_uri": "http://elsewhere/keys"}, "is of another issuer"),
        (DISCOVERY, {"jwks_uri": "http://elsewhere/keys"}, "is of another issuer"),
        (DISCOVERY, 404, "answered with status 404"),
    ],
)
async def test_an_issuer_that_answers_nonsense(server: IssuerServer, path: str, page: Any, words: str) -> None:
    world = World(server)
    good = server.pages[path]
    server.pages[path] = page
    with pytest.raises(IssuerUnavailable, match=words):
        await world.name(server.sign())
    server.pages[path] = good
    world.clock.seconds += ASK_EVERY_S
    assert await world.name(server.sign()) == "ann"


async def test_a_discovery_document_without_keys(server: IssuerServer) -> None:
    server.pages[DISCOVERY] = {"issuer": server.url}
    with pytest.raises(IssuerUnavailable, match="names no keys"):
        await World(server).name(server.sign())


async def test_an_issuer_that_hangs_is_given_up(server: IssuerServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "TIMEOUT_S", 0.2)
    server.hang.clear()
    with pytest.raises(IssuerUnavailable, match="did not answer within"):
        await World(server).name(server.sign())
