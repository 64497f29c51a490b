"""A worker works on whatever became of its connection."""

import logging
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from starforge.adapters.bus import celery_app
from starforge.adapters.bus.celery_config import QUEUE
from tests.contract.bus.deaf_worker import NOTE
from tests.servers import RedisServer

PATIENCE_S = 60


@pytest.fixture
def log(redis: RedisServer, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """What a worker says, whose tasks make a file of their name each."""
    said = tmp_path / "log"
    command = [sys.executable, "-m", "tests.contract.bus.deaf_worker", redis.url, str(tmp_path)]
    with said.open("w") as out, subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT) as process:
        yield said.read_text
        process.terminate()


def until(holds: Callable[[], bool], log: Callable[[], str]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, log()
        time.sleep(0.1)


def send(redis: RedisServer, name: str) -> None:
    celery_app(redis.url).send_task(NOTE, [name], queue=QUEUE)


def test_a_worker_that_hears_of_nothing_connects_anew(
    redis: RedisServer, tmp_path: Path, log: Callable[[], str]
) -> None:
    send(redis, "hears")
    until((tmp_path / "hears").exists, log)
    (tmp_path / "deaf").touch()
    until(lambda: not (tmp_path / "deaf").exists(), log)
    for name in ("one", "two", "three"):  # the first ones may be on their way already
        send(redis, name)
    until((tmp_path / "three").exists, log)
    assert "Connection to broker lost" in log()


def test_what_cannot_be_acknowledged_takes_no_place(redis: RedisServer) -> None:
    with celery_app(redis.url, socket_timeout_s=1, eager_retries=0).connection_for_read() as connection:
        channel = connection.default_channel
        channel.basic_qos(prefetch_count=1)
        send(redis, "one")
        with connection.SimpleQueue(QUEUE, channel=channel) as queue:
            message = queue.get(timeout=10)
            assert not channel.qos.can_consume()
            redis.stop()
            message.ack_log_error(logging.getLogger("test"), connection.connection_errors)
            assert channel.qos.can_consume()
            redis.start()
