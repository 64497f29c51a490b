"""What StarForge itself stands on, and its own processes: broken and mended, each as a coroutine over the scene."""

import asyncio
import time
from pathlib import Path
from urllib.parse import urlsplit

from tests.e2e.faults.cluster import becomes
from tests.e2e.faults.fault import Act
from tests.e2e.faults.processes import Killer
from tests.e2e.faults.scene import Scene, say

PRINTED_S = 120


async def redis_dies(scene: Scene) -> None:
    await asyncio.to_thread(scene.site.redis.stop)


async def redis_comes_back(scene: Scene) -> None:
    if scene.site.redis.process is None:
        await asyncio.to_thread(scene.site.redis.start)


async def redis_freezes(scene: Scene) -> None:
    scene.site.redis.freeze()


async def redis_thaws(scene: Scene) -> None:
    scene.site.redis.thaw()


def near_the_end(strike: Act) -> Act:
    """The same, when the code of every job has a second or two to run."""

    async def later(scene: Scene) -> None:
        await until_printed(scene, lines_to_come=4)
        await strike(scene)

    return later


async def until_printed(scene: Scene, *, lines_to_come: int) -> None:
    """Return once no job has more lines to print than that, which is the moment of the fault then."""

    async def have_printed() -> bool:
        return all(job.story.has_ended or job.lines_to_come() <= lines_to_come for job in scene.jobs)

    await becomes(PRINTED_S, have_printed)
    scene.struck_at = time.time()


async def redis_is_emptied(scene: Scene) -> None:
    await scene.site.empty_redis()


async def postgres_dies(scene: Scene) -> None:
    scene.kept["postgres"] = "down"
    await asyncio.to_thread(scene.site.postgres.stop)


async def postgres_comes_back(scene: Scene) -> None:
    if scene.kept.pop("postgres", None):
        await asyncio.to_thread(scene.site.postgres.start)


async def ours_are_killed(scene: Scene) -> None:
    """Until it is healed, which ends with all of them started again."""
    scene.killer = Killer(scene.site.processes, scene.seed)
    scene.killer.start()


async def ours_are_all_gone(scene: Scene) -> None:
    for process in scene.site.processes.values():
        await asyncio.to_thread(process.bury)


async def ours_are_back(scene: Scene) -> None:
    for process in scene.site.processes.values():
        if not process.is_up:
            process.start()
    await scene.site.ready()


async def ours_rest(scene: Scene) -> None:
    """All of them up, and nobody kills them any more."""
    if scene.killer:
        await scene.killer.stop()
        say(f"  {len(scene.killer.kills)} kills: {', '.join(scene.killer.kills[-5:])} were the last")
        await scene.site.ready()


async def store_dies(scene: Scene) -> None:
    if scene.there:
        await scene.there.kill(_s3(scene))
        return
    objects = _objects(scene)
    objects.rename(objects.with_suffix(".away"))
    objects.touch()  # so that nobody makes it again


async def store_comes_back(scene: Scene) -> None:
    if scene.there:
        await scene.there.start(_s3(scene))
        return
    away = _objects(scene).with_suffix(".away")
    if away.exists():
        _objects(scene).unlink()
        away.rename(_objects(scene))


def _s3(scene: Scene) -> str:
    """The process of the cluster that is the object store."""
    return f"s3-{urlsplit(scene.site.settings['FORGE_S3_ENDPOINT']).scheme}"


def _objects(scene: Scene) -> Path:
    return Path(scene.site.settings["FORGE_DATA_DIR"]) / "objects"
