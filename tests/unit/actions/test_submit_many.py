from collections.abc import Callable
from dataclasses import replace

import pytest

from starforge.domain.actions.submit import Submission, SubmitStatus
from starforge.domain.actions.submit_many import BATCH_MAX, BatchErrorPolicy, ItemOutcome, submit_many
from starforge.domain.capsule import InlineFile
from starforge.domain.errors import CodeRefused, Problem, SpecRefused, StaleRevision, Unsatisfiable, UserMistake
from starforge.domain.idempotency import KEPT, PROMISED
from starforge.domain.names import Digest
from starforge.domain.queries import JobFilter, JobOrder, Window
from tests.contract.store.counting import sent_by
from tests.unit.actions.fakes import Crash
from tests.unit.actions.world import ANN, DRAFT, FILES, World

INDEPENDENT, ALL = BatchErrorPolicy
S = SubmitStatus
BAD = Submission(replace(DRAFT, name=""), FILES, "bad")


def item(key: str | None = None, **changed: object) -> Submission:
    return Submission(replace(DRAFT, **changed), FILES, key)  # type: ignore[arg-type]


def send(world: World, *items: Submission | UserMistake, policy: BatchErrorPolicy = INDEPENDENT) -> list[ItemOutcome]:
    return submit_many(world.ports, items, ANN, policy)


def statuses(outcomes: list[ItemOutcome]) -> list[SubmitStatus]:
    return [one.status for one in outcomes]


def names(world: World) -> list[str]:
    page = world.sql.job_page(JobFilter(), JobOrder(descending=False), Window(200))
    return sorted(job.spec.name for _, job in page.rows)


def test_every_item_gets_its_job_in_order(world: World) -> None:
    done = send(world, *(item(f"k{number}", name=f"n{number}") for number in range(BATCH_MAX)))
    assert statuses(done) == [S.CREATED] * BATCH_MAX
    assert [one.job.spec.name for one in done if one.job] == [f"n{number}" for number in range(BATCH_MAX)]
    assert len(world.due()) == BATCH_MAX
    assert sorted(world.nudged) == sorted(world.due())
    assert [row.position for row in world.feed()] == list(range(1, len(world.feed()) + 1))


def test_a_hundred_jobs_cost_few_statements(world: World) -> None:
    with sent_by(world.sql) as sent:
        send(world, *(item(f"k{number}") for number in range(BATCH_MAX)))
    assert len(sent) <= 20


def test_what_is_wrong_with_one_item_does_not_hold_up_the_others(world: World) -> None:
    mistake = SpecRefused([Problem("UNKNOWN_PROJECT", ("spec", "project"), "There is none.")])
    no_code = Submission(DRAFT, Digest("0" * 64))
    bad_file = Submission(DRAFT, (InlineFile("../x", ""),))
    done = send(world, item("a", name="a"), BAD, mistake, no_code, bad_file, item(name="b"))
    assert statuses(done) == [S.CREATED, S.REFUSED, S.REFUSED, S.REFUSED, S.REFUSED, S.CREATED]
    fields = [[problem.field for problem in one.mistake.problems] for one in done if one.mistake]
    assert fields == [[("spec", "name")], [("spec", "project")], [("code", "digest")], [("code",)]]
    assert isinstance(done[4].mistake, CodeRefused)
    assert names(world) == ["a", "b"]


def test_all_or_nothing_makes_nothing_for_one_mistake(world: World) -> None:
    old = send(world, item("old", name="old"))
    done = send(world, item("new"), BAD, item("old", name="old"), item(), policy=ALL)
    assert statuses(done) == [S.NOT_DONE, S.REFUSED, S.REPLAYED, S.NOT_DONE]
    assert [one.job for one in done] == [None, None, old[0].job, None]
    assert names(world) == ["old"]


def test_all_or_nothing_makes_all_that_are_fine(world: World) -> None:
    assert statuses(send(world, item("a"), item("b"), policy=ALL)) == [S.CREATED] * 2
    assert len(names(world)) == 2


def test_a_batch_that_is_sent_again_is_replayed(world: World) -> None:
    first = send(world, item("a"), item("b"))
    again = send(world, item("b"), item("c"), item("a"))
    assert statuses(again) == [S.REPLAYED, S.CREATED, S.REPLAYED]
    assert [again[2].job, again[0].job] == [one.job for one in first]


def test_a_key_twice_in_one_batch_means_one_job(world: World) -> None:
    done = send(world, item("a"), item("a"), item("a", name="other"))
    assert statuses(done) == [S.CREATED, S.REPLAYED, S.REFUSED]
    assert done[0].job == done[1].job
    assert done[2].mistake is not None
    assert [(one.code, one.field) for one in done[2].mistake.problems] == [("CONFLICT", ("idempotencyKey",))]


def test_keys_are_their_own_in_each_project(world: World) -> None:
    done = send(world, item("a", project="vision"), item("a", project="speech"))
    assert statuses(done) == [S.CREATED] * 2


def test_of_two_batches_at_once_each_key_makes_one_job(world: World) -> None:
    world.store.interfere = [lambda: send(world, item("b", name="b"), item("c", name="c"))]
    done = send(world, item("a", name="a"), item("b", name="b"))
    assert statuses(done) == [S.CREATED, S.REPLAYED]
    assert names(world) == ["a", "b", "c"]


def test_a_store_that_never_takes_it_is_told_and_makes_nothing(world: World) -> None:
    def stale() -> None:
        raise StaleRevision("Somebody was first.")

    world.store.interfere = [stale] * 99
    with pytest.raises(StaleRevision):
        send(world, item("a"))
    world.store.interfere = []
    assert names(world) == []


def test_one_that_is_cut_before_or_after_its_commit_can_be_sent_again(new_world: Callable[[], World]) -> None:
    for at, status in ((1, S.CREATED), (2, S.REPLAYED)):
        world = new_world()
        world.faults.at = at
        with pytest.raises(Crash):
            send(world, item("a"), item("b"))
        assert statuses(send(world, item("a"), item("b"))) == [status] * 2
        assert len(names(world)) == 2


def test_what_no_node_could_ever_hold_is_refused_alone(world: World) -> None:
    world.see_node(gpus=4)
    large = Submission(replace(DRAFT, pools=(replace(DRAFT.pools[0], gpus_per_machine=8),)), FILES)
    done = send(world, large, item("a"), replace(large, allow_unsatisfiable=True))
    assert statuses(done) == [S.REFUSED, S.CREATED, S.CREATED]
    assert isinstance(done[0].mistake, Unsatisfiable)


@pytest.mark.parametrize("count", [0, BATCH_MAX + 1])
def test_too_few_or_too_many(world: World, count: int) -> None:
    with pytest.raises(UserMistake) as refused:
        send(world, *[item()] * count)
    assert [(one.code, one.field) for one in refused.value.problems] == [("OUT_OF_RANGE", ("items",))]


def test_it_needs_neither_fleet_nor_object_store(world: World) -> None:
    world.fleet.down, world.objects.down = "away", True
    assert statuses(send(world, item("a"))) == [S.CREATED]


def test_a_key_is_remembered_for_as_long_as_was_promised_and_then_forgotten(world: World) -> None:
    send(world, item("a"))
    world.clock.forward(PROMISED.total_seconds())
    assert world.sql.prune_idempotency(before=world.clock() - KEPT) == 0
    assert statuses(send(world, item("a"))) == [S.REPLAYED]
    world.clock.forward((KEPT - PROMISED).total_seconds() + 1)
    assert world.sql.prune_idempotency(before=world.clock() - KEPT) == 1
    assert statuses(send(world, item("a"))) == [S.CREATED]
