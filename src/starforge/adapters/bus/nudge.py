"""Tells a worker to look at commands, by a Celery message for each."""

import logging
from collections.abc import Sequence

from kombu.exceptions import KombuError
from redis.exceptions import RedisError

from starforge.adapters.bus.celery_config import QUEUE, TASK_RUN, celery_app
from starforge.adapters.bus.complaints import Complaints
from starforge.adapters.bus.errands import Errands
from starforge.domain.names import CommandId

_LIMIT_S = 1.0
_SOCKET_TIMEOUT_S = 0.5
_log = logging.getLogger(__name__)


class CeleryNudge:
    """A Nudge (see the port). The message is sent by a thread of its own, as Celery's waiting can't be bounded."""

    def __init__(self, redis_url: str) -> None:
        self._app = celery_app(redis_url, socket_timeout_s=_SOCKET_TIMEOUT_S, eager_retries=1)
        self._errands = Errands("starforge-nudge")
        self._failures = Complaints(_log, "Telling workers about commands over Redis")

    @property
    def failures(self) -> int:
        """Calls that sent not all of their messages, since the start; the tick sends what is due again."""
        return self._failures.count

    def __call__(self, commands: Sequence[CommandId]) -> None:
        if not commands:
            return
        try:
            self._errands.run(lambda: self._send(tuple(commands)), wait_s=_LIMIT_S)
        except (KombuError, RedisError, OSError, TimeoutError) as error:
            self._failures.add(type(error).__name__)

    def _send(self, commands: Sequence[CommandId]) -> None:
        policy = {"max_retries": 1, "interval_start": 0, "interval_step": 0, "interval_max": 0}
        for command in commands:
            self._app.send_task(
                TASK_RUN,
                args=[command],
                task_id=command,
                queue=QUEUE,
                ignore_result=True,
                retry=True,
                retry_policy=policy,
            )

    def close(self) -> None:
        self._app.close()


__all__ = ["CeleryNudge"]
