"""Has a worker connect anew if it is idle while messages wait, whatever made it deaf.

Celery over Redis notices most losses of a connection, not all; a worker that misses one would never work again.
"""

from typing import Any

from celery import bootsteps
from celery.worker import state
from redis import Redis
from redis.exceptions import RedisError

LOOK_S = 5.0
DEAF_AFTER = 2
"""Looks in a row that find messages, and nothing taken in between: an idle worker that hears is given one at once."""
_PATIENCE_S = 2.0


class Vigil(bootsteps.StartStopStep):  # type: ignore[misc]
    """A part of Celery's consumer, made anew with each of its connections."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, consumer: Any, **options: Any) -> None:
        super().__init__(consumer, **options)
        self._timer: Any = None
        self._client: Redis | None = None
        self._deaf, self._taken = 0, 0

    def start(self, consumer: Any) -> None:
        conf, self._deaf = consumer.app.conf, 0
        self._client = Redis.from_url(conf.broker_url, socket_timeout=_PATIENCE_S, socket_connect_timeout=_PATIENCE_S)
        self._timer = consumer.timer.call_repeatedly(LOOK_S, self._look, (self._client, conf.task_default_queue))

    def stop(self, consumer: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._client is not None:
            self._client.close()

    def _look(self, client: "Redis", queue: str) -> None:
        """ConnectionError, on which Celery's consumer begins anew, once the worker is known to be deaf."""
        taken = sum(state.total_count.values())
        idle = not state.reserved_requests and taken == self._taken
        self._deaf = self._deaf + 1 if idle and _waits(client, queue) else 0
        self._taken = taken
        if self._deaf >= DEAF_AFTER:
            raise ConnectionError(f"messages wait in {queue}, and none has come for {LOOK_S * DEAF_AFTER:.0f} s")


def _waits(client: "Redis", queue: str) -> bool:
    """Whether messages wait. A broker that can't be asked is for Celery to notice and to tell."""
    try:
        return bool(client.llen(queue))
    except RedisError:
        return False
