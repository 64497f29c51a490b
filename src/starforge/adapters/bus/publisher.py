"""Tells every gateway about new rows of the feed, by Redis pub/sub."""

import logging
from collections.abc import Sequence

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from starforge.adapters.bus.complaints import Complaints
from starforge.adapters.bus.errands import Errands
from starforge.adapters.bus.messages import channel, encode
from starforge.domain.errors import RedisUnavailable
from starforge.domain.queries import FeedRow

_LIMIT_S = 1.0
_log = logging.getLogger(__name__)


class RedisBus:
    """`publish` is a Publish (see the port): one message per call, given up after a second."""

    def __init__(self, url: str, *, prefix: str = "starforge") -> None:
        self._channel = channel(url, prefix)
        # One try after the first, for a connection that the server closed while it was idle.
        self._redis = Redis.from_url(
            url, socket_timeout=_LIMIT_S, socket_connect_timeout=_LIMIT_S, retry=Retry(NoBackoff(), 1), protocol=2
        )
        self._errands = Errands("starforge-publish")
        self._failures = Complaints(_log, "Telling gateways about changes over Redis")

    @property
    def failures(self) -> int:
        """Messages that were not sent, since the start."""
        return self._failures.count

    def publish(self, rows: Sequence[FeedRow]) -> None:
        """Send `rows`; never raises and takes a second at most."""
        if not rows:
            return
        message = encode(rows)
        try:
            self._errands.run(lambda: self._send(message), wait_s=_LIMIT_S)
        except (RedisError, OSError, TimeoutError) as error:
            self._failures.add(type(error).__name__)

    def ping(self) -> None:
        """Ask for a sign of life; RedisUnavailable if none comes within a second."""
        try:
            self._redis.ping()
        except (RedisError, OSError) as error:
            why = f"Redis can't be asked ({type(error).__name__}): check FORGE_REDIS_URL and the server."
            raise RedisUnavailable(why) from error

    def _send(self, message: bytes) -> None:
        self._redis.publish(self._channel, message)

    def close(self) -> None:
        self._redis.close()


__all__ = ["RedisBus"]
