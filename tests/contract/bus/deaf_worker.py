"""A Celery worker as ours are, that is deaf while there is a file `deaf` when it looks: URL DIRECTORY."""

import sys
from pathlib import Path
from typing import Any

from celery import Celery, bootsteps

from starforge.adapters.bus import celery_app
from starforge.adapters.bus.vigil import Vigil

NOTE = "tests.note"
LOOK_S = 0.1


def make(url: str, directory: Path) -> Celery:
    app = celery_app(url)
    app.steps["consumer"].add(Vigil)

    def note(name: str) -> None:
        (directory / name).touch()

    class Deafness(bootsteps.StartStopStep):
        """As when every place is taken by messages whose acks were lost; until the connection is made anew."""

        requires = ("celery.worker.consumer.tasks:Tasks",)

        def start(self, consumer: Any) -> None:
            consumer.timer.call_repeatedly(LOOK_S, self.look, (consumer.task_consumer.channel.qos,))

        def look(self, qos: Any) -> None:
            if (directory / "deaf").exists():
                (directory / "deaf").unlink()
                qos.can_consume = lambda: False

    app.steps["consumer"].add(Deafness)
    app.task(note, name=NOTE)
    return app


if __name__ == "__main__":
    make(sys.argv[1], Path(sys.argv[2])).worker_main(["worker", "--concurrency=2", "--loglevel=INFO"])
