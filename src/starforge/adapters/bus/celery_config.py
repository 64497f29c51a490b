"""Celery as our producers and workers are both set up. A message says "look at command N" and may be lost or doubled.

The limits hold in this order: a task's soft and hard time limit, and the time after which Redis hands an unacknowledged
message out again.
"""

from celery import Celery

from starforge.adapters.bus import broker

TASK_RUN = "starforge.run"
QUEUE = "starforge"
SOFT_LIMIT_S = 110
HARD_LIMIT_S = 120
VISIBILITY_TIMEOUT_S = 900
SOFT_SHUTDOWN_S = 20
_SOCKET_TIMEOUT_S = 10
_HEALTH_CHECK_S = 25


def celery_app(
    redis_url: str, *, socket_timeout_s: float = _SOCKET_TIMEOUT_S, eager_retries: int | None = None
) -> Celery:
    """An app on the broker `redis_url`; connecting is tried `eager_retries` times more, or for ever if that is None."""
    broker.use_it()
    app = Celery("starforge", broker=redis_url, set_as_current=False)
    app.conf.update(
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options=_transport(socket_timeout_s, eager_retries),
        task_default_queue=QUEUE,
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=True,
        task_reject_on_worker_lost=True,
        task_soft_time_limit=SOFT_LIMIT_S,
        task_time_limit=HARD_LIMIT_S,
        worker_prefetch_multiplier=1,
        worker_soft_shutdown_timeout=SOFT_SHUTDOWN_S,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        enable_utc=True,
        timezone="UTC",
    )
    return app


def _transport(socket_timeout_s: float, retries: int | None) -> dict[str, object]:
    options: dict[str, object] = {
        "visibility_timeout": VISIBILITY_TIMEOUT_S,
        "socket_timeout": socket_timeout_s,
        "socket_connect_timeout": socket_timeout_s,
        "socket_keepalive": True,
        "health_check_interval": _HEALTH_CHECK_S,
    }
    if retries is not None:
        options |= {"max_retries": retries, "interval_start": 0, "interval_step": 0, "interval_max": 0}
    return options


__all__ = [
    "HARD_LIMIT_S", "QUEUE", "SOFT_LIMIT_S", "SOFT_SHUTDOWN_S", "TASK_RUN", "VISIBILITY_TIMEOUT_S",
    "celery_app",
]  # fmt: skip
