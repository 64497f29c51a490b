"""A sign of life of Redis, asked for right now."""

from collections.abc import Callable

import pytest

from starforge.adapters.bus import RedisBus
from starforge.domain.errors import RedisUnavailable
from tests.servers import RedisServer, free_port


@pytest.mark.parametrize(
    ("lose", "find"),
    [(RedisServer.stop, RedisServer.start), (RedisServer.freeze, RedisServer.thaw)],
    ids=["down", "frozen"],
)
@pytest.mark.parametrize("known", [True, False], ids=["connected before", "new"])
def test_a_lost_redis_is_told_and_found_again(
    redis: RedisServer, lose: Callable[[RedisServer], None], find: Callable[[RedisServer], None], known: bool
) -> None:
    bus = RedisBus(redis.url)
    if known:
        bus.ping()
    lose(redis)
    with pytest.raises(RedisUnavailable):
        bus.ping()
    find(redis)
    bus.ping()
    bus.close()


def test_no_password_is_told() -> None:
    bus = RedisBus(f"redis://:hush@127.0.0.1:{free_port()}/0")
    with pytest.raises(RedisUnavailable) as lost:
        bus.ping()
    assert "hush" not in str(lost.value)
    bus.close()
