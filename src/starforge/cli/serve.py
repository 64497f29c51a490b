"""The server processes: gateway, worker, beat, watch. Each runs until SIGINT or SIGTERM."""

import functools
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

from starforge.adapters.settings import Settings, load_settings
from starforge.cli.exits import ExitCode
from starforge.domain.errors import SettingsWrong

THREADS_END_S = 1.0


def settings_or_exit(needs: tuple[str, ...] = ()) -> Settings:
    """The settings of this process; exit code 2, with a sentence for each that is wrong."""
    try:
        return load_settings(os.environ, required=needs)
    except SettingsWrong as wrong:
        for problem in wrong.problems:
            print(problem.message, file=sys.stderr)  # noqa: T201
        raise SystemExit(2) from None


def start_logging() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)  # it tells of every socket
    for noisy in ("httpx", "botocore", "urllib3", "celery.beat", "celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def api(*, dev: bool = False) -> None:
    """Serve GraphQL."""
    from starforge.adapters.wiring import build, prepare
    from starforge.api.app import make_gateway
    from starforge.api.context import POOLS
    from starforge.api.server import server, tune_garbage
    from starforge.api.transport.limits import TransportLimits

    start_logging()
    settings = settings_or_exit()
    prepare(settings)
    parts = build(settings)
    parts.ports.objects.prepare()
    limits = TransportLimits()
    gateway = make_gateway(parts, dev=dev and settings.bootstrap_token is None, limits=limits)
    tune_garbage()
    on_signal(sys.exit)  # uvicorn raises the signal again once everything has ended
    try:
        server(gateway, host=settings.host, port=settings.port, grace_s=settings.shutdown_grace_s, limits=limits).run()
    finally:
        parts.close()
        leave_threads(POOLS)


def worker(*, concurrency: int, beat: bool) -> None:
    """Do commands, or with `beat` send the ticks on which they are sent again."""
    from starforge.adapters.wiring import Parts, build, prepare, warm
    from starforge.workers.app import make_app

    start_logging()
    settings = settings_or_exit(("FORGE_REDIS_URL",))
    prepare(settings)

    @functools.cache
    def parts() -> Parts:
        return build(settings)

    redis_url = settings.redis_url
    app = make_app(redis_url.get_secret_value() if redis_url else "", parts)
    if beat:
        app.Beat(scheduler="celery.beat:Scheduler", loglevel="WARNING", quiet=True).run()
        return
    warm(settings)
    arguments = ["worker", "--without-gossip", "--without-mingle", "--loglevel", "INFO"]
    app.worker_main([*arguments, "--concurrency", str(concurrency), "--hostname", f"starforge-{os.getpid()}@%h"])


def watch() -> None:
    """Observe the fleet."""
    from starforge.adapters.wiring import build, prepare
    from starforge.workers.watch.loop import watch as observe

    start_logging()
    settings = settings_or_exit(("FORGE_REDIS_URL",))
    prepare(settings)
    parts = build(settings)
    stop = threading.Event()
    on_signal(stop.set)
    try:
        observe(parts.ports, stop)
    finally:
        parts.close()


def busy() -> None:
    """Keep the simulated fleet busy with FORGE_SIMULATE jobs."""
    from starforge.adapters.wiring import build
    from starforge.workers.busy import keep_busy

    start_logging()
    settings = settings_or_exit(("FORGE_REDIS_URL", "FORGE_SIMULATE"))
    parts = build(settings)
    stop = threading.Event()
    on_signal(stop.set)
    try:
        keep_busy(parts, settings.simulate, stop)
    finally:
        parts.close()


def leave_threads(names: tuple[str, ...]) -> None:
    """End the process now if threads that begin with `names` still wait for something outside: it may be minutes.

    What they do is one transaction each, so that this is no worse for them than a lost machine.
    """
    others = [each for each in threading.enumerate() if each.name.startswith(names)]
    until = time.monotonic() + THREADS_END_S
    for each in others:
        each.join(max(0.0, until - time.monotonic()))
    left = [each.name for each in others if each.is_alive()]
    if left:
        logging.error("The grace is over, and what these threads wait for is given up: %s.", ", ".join(left))
        logging.shutdown()
        os._exit(ExitCode.FAILED)


def on_signal(call: Callable[[], None]) -> None:
    """Call on SIGINT and SIGTERM."""

    def handle(number: int, frame: FrameType | None) -> None:
        call()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handle)
