"""Nudge on a real Redis: a message for each command, and no more than a moment lost when Redis is."""

import logging
from collections.abc import Callable

import pytest
from redis import Redis

from starforge.adapters.bus import CeleryNudge, celery_app
from starforge.adapters.bus.celery_config import QUEUE, TASK_RUN
from starforge.domain.names import CommandId
from tests.servers import RedisServer, free_port

ONE, TWO = CommandId("cmd-1"), CommandId("cmd-2")


def waiting(redis: RedisServer) -> list[tuple[str, str, list[str]]]:
    """Task, id and arguments of the messages in the queue, oldest first, as a worker takes them."""
    found = []
    with celery_app(redis.url).connection_for_read() as connection, connection.SimpleQueue(QUEUE) as queue:
        for _ in range(queue.qsize()):
            message = queue.get(timeout=10)
            found.append((message.headers["task"], message.headers["id"], message.payload[0]))
            message.ack()
    return found


def test_each_command_is_a_message_with_its_id(redis: RedisServer) -> None:
    nudge = CeleryNudge(redis.url)
    nudge([ONE, TWO])
    nudge([])
    assert waiting(redis) == [(TASK_RUN, "cmd-1", ["cmd-1"]), (TASK_RUN, "cmd-2", ["cmd-2"])]
    assert nudge.failures == 0


def test_no_results_are_kept(redis: RedisServer) -> None:
    CeleryNudge(redis.url)([ONE])
    with Redis.from_url(redis.url) as client:
        assert not [key for key in client.keys("*") if b"celery-task-meta" in key]


@pytest.mark.parametrize(
    ("lose", "find"),
    [(RedisServer.stop, RedisServer.start), (RedisServer.freeze, RedisServer.thaw)],
    ids=["down", "frozen"],
)
@pytest.mark.parametrize("known", [True, False], ids=["connected before", "new"])
def test_a_lost_redis_is_no_error_and_is_found_again(
    redis: RedisServer,
    lose: Callable[[RedisServer], None],
    find: Callable[[RedisServer], None],
    known: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    nudge = CeleryNudge(redis.url)
    if known:
        nudge([ONE])
    lose(redis)
    with caplog.at_level(logging.WARNING, "starforge"):
        nudge([ONE])
        nudge([ONE, TWO])
    assert nudge.failures == 2
    assert len([one for one in caplog.records if one.name.startswith("starforge")]) == 1
    find(redis)
    nudge([TWO])
    assert (TASK_RUN, "cmd-2", ["cmd-2"]) in waiting(redis)


def test_every_call_comes_back_while_redis_hangs(redis: RedisServer) -> None:
    nudge = CeleryNudge(redis.url)
    redis.freeze()
    for _ in range(4):
        nudge([ONE])
    assert nudge.failures == 4


def test_no_secret_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    CeleryNudge(f"redis://:hush@127.0.0.1:{free_port()}/0")([ONE])
    assert "Telling workers" in caplog.text
    assert "hush" not in caplog.text
