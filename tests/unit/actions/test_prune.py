"""What is old is forgotten, and nothing that somebody may ask for again."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

import pytest

from starforge.domain.actions.package import upload_key
from starforge.domain.actions.prepare_code import Announced, prepare_code
from starforge.domain.actions.prune import KEPT, prune
from starforge.domain.errors import ObjectStoreUnavailable
from starforge.domain.job import JobState
from starforge.domain.names import Digest
from tests.unit.actions.fakes import Crash, code_archive, code_digest
from tests.unit.actions.world import World

CODE = {"train.py": "print(2)\n"}
SHA256 = "b" * 64


def announce(world: World, digest: str = "a" * 64, sha256: str = SHA256) -> Digest:
    prepare_code(world.ports, Announced(Digest(digest), sha256, len(code_archive(CODE)), 1))
    world.objects.objects[upload_key(sha256)] = code_archive(CODE)
    return Digest(digest)


def later(world: World, by: timedelta = timedelta()) -> None:
    world.clock.forward((KEPT + by).total_seconds())


def test_code_that_was_announced_and_never_used_is_forgotten_with_its_object(world: World) -> None:
    digest = announce(world)
    later(world)
    prune(world.ports)
    assert world.sql.upload(digest) is not None, "a week is not over"
    world.clock.forward(1)
    prune(world.ports)
    assert world.sql.upload(digest) is None
    assert upload_key(SHA256) not in world.objects.objects


def test_code_that_waits_to_be_packaged_stays(world: World) -> None:
    digest = announce(world, code_digest(CODE))
    job = world.submit(code=digest)
    later(world, timedelta(days=1))
    prune(world.ports)
    world.work()
    assert world.job(job).state is JobState.PENDING
    prune(world.ports)
    assert world.sql.upload(digest) is None
    assert world.sql.code(digest) is not None


def test_code_that_was_announced_again_stays(world: World) -> None:
    digest, other = announce(world), "c" * 64
    later(world)
    announce(world)
    world.clock.forward(1)
    prune(world.ports)
    assert world.sql.upload(digest) is not None
    later(world)
    announce(world, other)  # the same archive, said to be other code
    prune(world.ports)
    assert upload_key(SHA256) in world.objects.objects


def test_an_object_store_that_is_away_keeps_what_points_into_it(world: World) -> None:
    digest = announce(world)
    later(world, timedelta(days=1))
    world.objects.down = True
    with pytest.raises(ObjectStoreUnavailable):
        prune(world.ports)
    assert world.sql.upload(digest) is not None


def test_a_worker_that_dies_anywhere_leaves_nothing_behind(new_world: Callable[[], World]) -> None:
    for at in range(1, 5):
        world = new_world()
        digest = announce(world)
        later(world, timedelta(days=1))
        world.faults.count, world.faults.at = 0, at
        with suppress(Crash):
            prune(world.ports)
        prune(world.ports)
        assert world.sql.upload(digest) is None
        assert upload_key(SHA256) not in world.objects.objects


def test_commands_that_are_done_are_forgotten_and_open_ones_kept(world: World) -> None:
    job = world.finishing()
    world.fleet.down = "away"
    world.settle(30)
    later(world, timedelta(days=1))
    prune(world.ports)
    assert world.due(), "its removal is not done"
    world.fleet.down = None
    world.settle(60)
    assert world.job(job).ended
    assert world.sql.prune_commands(before=world.clock() + timedelta(days=1)) > 0
    assert world.sql.prune_commands(before=world.clock() + timedelta(days=1)) == 0
