"""Packaging: code from a request or an upload, each object once, and code that can't be taken."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from starforge.domain.actions.cancel import Wish, cancel
from starforge.domain.actions.package import upload_key
from starforge.domain.actions.prepare_code import Announced, prepare_code
from starforge.domain.capsule import capsule_key, code_key
from starforge.domain.job import JobOutcome, JobState
from starforge.domain.names import JobId
from starforge.domain.reason import ReasonCode
from tests.unit.actions.fakes import Crash, code_archive, code_digest
from tests.unit.actions.world import ANN, DRAFT, World

CODE = {"train.py": "print(2)\n"}
DIGEST = code_digest(CODE)
SENT = "5" * 64


def send(world: World, content: bytes = code_archive(CODE)) -> None:
    assert prepare_code(world.ports, Announced(DIGEST, SENT, len(content), 1)) is not None
    world.objects.objects[upload_key(SENT)] = content


def refused(world: World, job: JobId) -> str:
    after = world.job(job)
    assert after.attempt.outcome is JobOutcome.FAILED
    assert after.attempt.reason is not None
    assert after.attempt.reason.code is ReasonCode.CAPSULE_INVALID
    assert world.fleet.launches == []
    return after.attempt.reason.message


def test_code_of_a_request_becomes_a_capsule_and_is_dropped(world: World) -> None:
    job = world.pending()
    after = world.job(job)
    assert after.code
    assert after.capsule
    assert set(world.objects.objects) == {code_key(after.code), capsule_key(after.capsule)}
    assert world.sql.inline_code(job) is None
    assert world.sql.code(after.code) is not None


def test_equal_jobs_share_their_code_and_capsule(world: World) -> None:
    one, two = world.job(world.pending()), world.job(world.pending())
    assert (one.code, one.capsule) == (two.code, two.capsule)
    assert len(world.objects.objects) == 2
    other = world.job(world.pending(replace(DRAFT, name="another")))
    assert other.code == one.code
    assert other.capsule != one.capsule


def test_a_capsule_that_another_zlib_stored_is_recorded_as_it_is_there(world: World) -> None:
    world.packer.salt = "old zlib"
    with pytest.raises(Crash):
        crash_at(world, "stored", 2)
    world.packer.salt = ""
    world.clock.forward(200)
    world.work()
    (job,) = {run.job for run in world.fleet.orders}
    digest = world.job(job).capsule
    assert digest
    record = world.sql.capsules([digest])[digest]
    stored = world.objects.objects[capsule_key(digest)]
    assert stored.startswith(b"old zlib")
    assert record.bytes == len(stored)


def crash_at(world: World, effect: str, times: int) -> None:
    """Submit and work until an effect was done for the n-th time, and die then."""
    seen = 0
    step = world.faults.step

    def counted(name: str) -> None:
        nonlocal seen
        seen += name == effect
        if seen == times:
            world.faults.step = step  # type: ignore[method-assign]
            raise Crash
        step(name)

    world.faults.step = counted  # type: ignore[method-assign]
    world.submit()
    world.work()


def test_a_capsule_that_was_lost_is_stored_again(world: World) -> None:
    first = world.job(world.pending())
    assert first.capsule
    del world.objects.objects[capsule_key(first.capsule)]
    world.pending()
    assert capsule_key(first.capsule) in world.objects.objects


def test_uploaded_code_is_verified_kept_and_the_upload_removed(world: World) -> None:
    send(world)
    job = world.submit(code=DIGEST)
    world.work()
    assert world.job(job).state is JobState.PENDING
    assert code_key(DIGEST) in world.objects.objects
    assert upload_key(SENT) not in world.objects.objects
    second = world.submit(code=DIGEST)
    world.work()
    assert world.job(second).state is JobState.PENDING


def test_an_upload_survives_a_worker_that_dies_anywhere(new_world: Callable[[], World]) -> None:
    calm = new_world()
    send(calm)
    start = calm.faults.count
    calm.submit(code=DIGEST)
    calm.work()
    for at in range(start + 3, calm.faults.count + 1):
        world = new_world()
        send(world)
        world.faults.at = at
        job = world.submit(code=DIGEST)
        with pytest.raises(Crash):
            world.work()
        world.clock.forward(200)
        world.work()
        assert world.job(job).state is JobState.PENDING
        assert upload_key(SENT) not in world.objects.objects


def test_an_upload_that_another_job_verifies_meanwhile_is_found_under_its_new_key(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(world)
    job = world.submit(code=DIGEST)
    fetch, tries = world.objects.fetch, []

    def raced(key: str, into: object) -> None:
        tries.append(key)
        if key == upload_key(SENT):
            world.objects.objects[code_key(DIGEST)] = world.objects.objects.pop(upload_key(SENT))
        fetch(key, into)  # type: ignore[arg-type]

    monkeypatch.setattr(world.objects, "fetch", raced)
    world.work()
    assert world.job(job).state is JobState.PENDING
    assert tries[:3] == [code_key(DIGEST), upload_key(SENT), code_key(DIGEST)]


def test_code_that_was_lost_can_be_sent_again(world: World) -> None:
    send(world)
    world.submit(code=DIGEST)
    world.work()
    del world.objects.objects[code_key(DIGEST)]
    send(world)
    job = world.submit(code=DIGEST)
    world.work()
    assert world.job(job).state is JobState.PENDING


def test_code_that_was_announced_but_never_sent_is_refused(world: World) -> None:
    send(world)
    world.objects.objects.clear()
    job = world.submit(code=DIGEST)
    world.work()
    assert "never sent" in refused(world, job)


@pytest.mark.parametrize("content", [code_archive({"train.py": "else"}), b"no archive"])
def test_code_that_is_not_what_was_announced_is_refused(world: World, content: bytes) -> None:
    send(world, content)
    job = world.submit(code=DIGEST)
    world.work()
    refused(world, job)
    assert code_key(DIGEST) not in world.objects.objects
    assert world.sql.code(DIGEST) is None
    world.settle(5)
    assert world.job(job).state is JobState.FAILED
    assert world.fleet.deletes == []


def test_a_job_without_any_code_is_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    job = world.submit()
    monkeypatch.setattr(world.sql, "inline_code", lambda job: None)
    world.work()
    assert "no code" in refused(world, job)


def test_a_cancel_in_the_middle_wins(new_world: Callable[[], World]) -> None:
    for skipped in range(3):
        world = new_world()
        job = world.submit()

        def cancels(world: World = world, job: JobId = job) -> None:
            cancel(world.ports, job, Wish(ANN))

        world.store.interfere = [*[lambda: None] * skipped, cancels]
        world.settle(10)
        assert world.job(job).state is JobState.CANCELED
        assert world.fleet.launches == []
