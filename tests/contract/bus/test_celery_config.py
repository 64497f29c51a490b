"""How Celery is set up, and that its limits hold in the order that keeps a command from being run twice at once."""

from starforge.adapters.bus.celery_config import (
    HARD_LIMIT_S,
    SOFT_LIMIT_S,
    VISIBILITY_TIMEOUT_S,
    celery_app,
)
from starforge.domain.actions.perform import LEASE_S, RENEW_S


def test_limits_are_in_order() -> None:
    assert 3 * RENEW_S < LEASE_S
    assert SOFT_LIMIT_S < HARD_LIMIT_S < VISIBILITY_TIMEOUT_S


def test_a_message_outlives_its_worker_and_no_results_are_kept() -> None:
    conf = celery_app("redis://localhost/0").conf
    assert conf.task_acks_late
    assert conf.task_reject_on_worker_lost
    assert conf.task_ignore_result
    assert conf.worker_prefetch_multiplier == 1
    assert (conf.task_soft_time_limit, conf.task_time_limit) == (SOFT_LIMIT_S, HARD_LIMIT_S)
    assert conf.broker_transport_options["visibility_timeout"] == VISIBILITY_TIMEOUT_S
    assert conf.accept_content == ["json"]
