"""The Celery app of workers and beat. A task only says "look at command N", or that it is time for a tick."""

from collections.abc import Callable
from typing import Any

from celery import Celery

from starforge.adapters.bus import celery_app
from starforge.adapters.bus.celery_config import QUEUE, TASK_RUN
from starforge.adapters.bus.vigil import Vigil
from starforge.adapters.wiring import Parts
from starforge.domain.signs import CHECK_EVERY_S
from starforge.workers import tasks

TICKS: dict[str, tuple[float, Callable[[Parts], object]]] = {
    "starforge.tick.commands": (1.0, tasks.send_due_commands),
    "starforge.tick.deadlines": (1.0, tasks.enforce_deadlines),
    "starforge.tick.health": (CHECK_EVERY_S, tasks.check_health),
    "starforge.tick.observer": (5.0, tasks.mind_observer),
    "starforge.tick.logs": (5.0, tasks.move_logs),
    "starforge.tick.retention": (60.0, tasks.prune_feed),
    "starforge.tick.keys": (600.0, tasks.forget_keys),
    "starforge.tick.sweep": (120.0, tasks.sweep),
    "starforge.tick.prune": (3600.0, tasks.prune),
}


def make_app(redis_url: str, parts: Callable[[], Parts]) -> Celery:
    """The app; `parts` is called in the process that does the work, after it was forked."""
    app = celery_app(redis_url)
    app.steps["consumer"].add(Vigil)

    def run(command: str) -> None:
        tasks.run_command(parts(), command)

    app.task(run, name=TASK_RUN)
    for name, (_, tick) in TICKS.items():
        app.task(_ticker(tick, parts), name=name)
    app.conf.beat_schedule = {name: _entry(name, every_s) for name, (every_s, _) in TICKS.items()}
    app.conf.beat_max_loop_interval = 1
    return app


def _ticker(tick: Callable[[Parts], object], parts: Callable[[], Parts]) -> Callable[[], None]:
    def run() -> None:
        tick(parts())

    return run


def _entry(name: str, every_s: float) -> dict[str, Any]:
    # A tick that nobody took in time is not worth doing: the next one does it.
    return {"task": name, "schedule": every_s, "options": {"queue": QUEUE, "expires": every_s * 2}}
