"""Redis between the processes: news of the feed by pub/sub, and messages to workers by Celery. It may lose anything."""

from starforge.adapters.bus.celery_config import celery_app
from starforge.adapters.bus.nudge import CeleryNudge
from starforge.adapters.bus.publisher import RedisBus
from starforge.adapters.bus.subscriber import Gap, GapWhy, News, Subscriber

__all__ = ["CeleryNudge", "Gap", "GapWhy", "News", "RedisBus", "Subscriber", "celery_app"]
