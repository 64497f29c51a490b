"""Celery's transport over Redis, with one thing mended: a worker does not lose its places when an ack can't be sent.

kombu gives the place of a message free only after Redis has heard of its ack. If Redis is away just then, the place
stays taken; and a worker without a free place looks for no message, notices no lost connection, and never works again.
"""

from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis, virtual


class QoS(redis.QoS):
    """Places are given free whatever Redis says: what it has not heard of is handed out again, which is harmless."""

    def ack(self, delivery_tag: str) -> None:
        try:
            redis.QoS.ack(self, delivery_tag)
        except Exception:
            virtual.QoS.ack(self, delivery_tag)
            raise

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        try:
            redis.QoS.reject(self, delivery_tag, requeue=requeue)
        except Exception:
            virtual.QoS.ack(self, delivery_tag)
            raise


class Channel(redis.Channel):
    QoS = QoS


class Transport(redis.Transport):
    Channel = Channel


def use_it() -> None:
    """Have every connection of this process to `redis://` or `rediss://` made by it."""
    aliases: dict[str, Any] = TRANSPORT_ALIASES
    aliases |= {"redis": f"{__name__}:Transport", "rediss": f"{__name__}:Transport"}
