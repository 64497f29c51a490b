"""Publish and the subscriber on a real Redis: what was published is heard, and what may be missing is told."""

import asyncio
import logging

import pytest
from redis import Redis

from starforge.adapters.bus import GapWhy, News, RedisBus, Subscriber
from tests.contract.bus.listening import LIMIT_S, Ear, listening, row
from tests.servers import RedisServer, free_port, redis_server


def test_the_rows_of_a_commit_arrive_as_one_message_in_order(redis: RedisServer) -> None:
    async def scenario() -> None:
        async with listening(redis.url, silence_s=LIMIT_S) as ear:
            bus.publish([row(1), row(2, "zwölf")])
            bus.publish([])
            bus.publish([row(3)])
            await ear.rows(row(3))
        assert ear.heard == [News((row(1), row(2, "zwölf"))), News((row(3),))]

    bus = RedisBus(redis.url)
    asyncio.run(scenario())
    assert bus.failures == 0


def test_two_installations_on_one_redis_do_not_hear_each_other(redis: RedisServer) -> None:
    async def scenario() -> None:
        async with listening(redis.url, silence_s=LIMIT_S) as ear:
            RedisBus(redis.url, prefix="other").publish([row(1)])
            RedisBus(redis.url.replace("/0", "/5")).publish([row(2)])
            RedisBus(redis.url).publish([row(3)])
            await ear.rows(row(3))
        assert ear.heard == [News((row(3),))]

    asyncio.run(scenario())


def test_silence_is_told(redis: RedisServer) -> None:
    async def scenario() -> None:
        async with listening(redis.url, silence_s=0.05) as ear:
            await ear.gap(GapWhy.SILENCE)
            RedisBus(redis.url).publish([row(1)])
            await ear.rows(row(1))

    asyncio.run(scenario())


def test_a_quiet_connection_is_asked_for_a_sign_of_life_and_kept(redis: RedisServer) -> None:
    async def scenario() -> None:
        with Redis.from_url(redis.url) as client:
            async with listening(redis.url, silence_s=0.2) as ear:
                while client.info("commandstats").get("cmdstat_ping", {"calls": 0})["calls"] < 2:
                    await ear.gap(GapWhy.SILENCE)
                assert set(ear.gaps) == {GapWhy.SILENCE}

    asyncio.run(scenario())


def test_a_foreign_message_is_a_gap(redis: RedisServer) -> None:
    async def scenario() -> None:
        with Redis.from_url(redis.url) as client:
            async with listening(redis.url, silence_s=LIMIT_S) as ear:
                for text in (b"\xff", b"[]", b"{}", b'{"v":1,"rows":[]}', b'{"v":2,"rows":[[1]]}'):
                    client.publish("starforge:0:feed", text)
                RedisBus(redis.url).publish([row(1)])
                await ear.rows(row(1))
            assert ear.gaps == [GapWhy.UNREADABLE] * 5

    asyncio.run(scenario())


def test_after_a_restart_there_is_a_gap_and_then_news(redis: RedisServer) -> None:
    async def scenario() -> None:
        async with listening(redis.url) as ear:
            redis.stop()
            await ear.gap(GapWhy.LOST)
            redis.start()
            await ear.gap(GapWhy.SUBSCRIBED)
            bus.publish([row(1)])
            await ear.rows(row(1))

    bus = RedisBus(redis.url)
    bus.publish([row(0)])
    asyncio.run(scenario())
    assert bus.failures == 0, "the connection that the restart broke was not made again"


def test_a_frozen_redis_is_noticed_and_heard_again(redis: RedisServer) -> None:
    async def scenario() -> None:
        async with listening(redis.url) as ear:
            redis.freeze()
            await ear.gap(GapWhy.LOST)
            redis.thaw()
            await ear.gap(GapWhy.SUBSCRIBED)
            RedisBus(redis.url).publish([row(1)])
            await ear.rows(row(1))

    asyncio.run(scenario())


def test_a_redis_that_is_not_there_yet_is_waited_for(redis: RedisServer) -> None:
    async def scenario() -> None:
        redis.stop()
        async with Subscriber(redis.url) as subscriber:
            ear = Ear(aiter(subscriber))
            await ear.gap(GapWhy.LOST)
            await ear.gap(GapWhy.LOST)
            redis.start()
            await ear.gap(GapWhy.SUBSCRIBED)

    asyncio.run(scenario())


def test_when_redis_gives_up_on_a_slow_reader_there_is_a_gap_and_then_news(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    limits = ("--client-output-buffer-limit", "pubsub", "64kb", "64kb", "1")
    wide = [row(position, "x" * 40_000) for position in range(400)]

    async def scenario(server: RedisServer) -> None:
        bus = RedisBus(server.url)
        async with listening(server.url, backlog=1) as ear:
            with Redis.from_url(server.url) as client:
                for one in wide:  # nobody reads while this blocks the loop
                    bus.publish([one])
                assert dict(client.pubsub_numsub("starforge:0:feed")) == {b"starforge:0:feed": 0}
            await ear.gap(GapWhy.LOST)
            await ear.gap(GapWhy.SUBSCRIBED)
            bus.publish([row(1000)])
            await ear.rows(row(1000))
        assert len([heard for heard in ear.heard if isinstance(heard, News)]) < len(wide)

    with redis_server(tmp_path_factory.mktemp("redis"), *limits) as server:
        asyncio.run(scenario(server))


@pytest.mark.parametrize("state", ["down", "frozen"])
def test_publishing_gives_up_without_an_error(redis: RedisServer, state: str, caplog: pytest.LogCaptureFixture) -> None:
    bus = RedisBus(redis.url)
    bus.publish([row(1)])
    redis.stop() if state == "down" else redis.freeze()
    with caplog.at_level(logging.WARNING):
        bus.publish([row(2)])
        bus.publish([row(3)])
    assert bus.failures == 2
    assert len(caplog.messages) == 1
    redis.start() if state == "down" else redis.thaw()
    bus.publish([row(4)])


def test_an_address_where_nobody_is_costs_no_more(caplog: pytest.LogCaptureFixture) -> None:
    bus = RedisBus(f"redis://:hush@127.0.0.1:{free_port()}/0")
    bus.publish([row(1)])
    assert bus.failures == 1
    assert "hush" not in caplog.text


def test_the_end_of_a_subscriber_is_not_held_up_by_a_frozen_redis(redis: RedisServer) -> None:
    async def scenario() -> None:
        async with asyncio.timeout(LIMIT_S), listening(redis.url):
            redis.freeze()

    asyncio.run(scenario())
