"""The nodes of the made-up cluster: what its scheduler has given away, and nothing else, is held."""

from dataclasses import replace
from datetime import datetime, timedelta

from starforge.adapters.simulated.nodes import node_views
from starforge.adapters.simulated.picture import picture
from starforge.adapters.simulated.record import Record
from starforge.adapters.simulated.timeline import timeline
from starforge.adapters.simulated.world import World
from starforge.domain.capacity.nodes import Claim, NodeView
from tests.unit.simulated.lives import SMALL, placed, record_of, spec_of

WORLD = World(nodes=SMALL)


def views(record: Record, at: datetime) -> dict[str, NodeView]:
    return {view.name: view for view in node_views(WORLD, [record], at)}


def claims(record: Record, at: datetime) -> list[Claim]:
    return [claim for view in views(record, at).values() for claim in view.claims]


def test_a_run_holds_from_its_placement_until_its_last_machine_is_gone() -> None:
    record = placed(WORLD, record_of(spec_of()))
    assert record.placement is not None
    since, asked = record.placement.at, record.placement.at + timedelta(seconds=60)
    gone = timeline(WORLD, deleted := replace(record, deleted_at=asked)).gone_at
    assert gone is not None
    moment = timedelta(microseconds=1)
    assert claims(record, since - moment) == []
    assert [claim.releasing for claim in claims(deleted, since)] == [False, False]
    assert [claim.releasing for claim in claims(deleted, gone - moment)] == [True, True]
    assert claims(deleted, gone) == []


def test_machines_are_told_as_the_pods_that_are_shown_of_them() -> None:
    record = placed(WORLD, record_of(spec_of()))
    assert record.placement is not None
    held = views(record, record.placement.at)
    pods = picture(timeline(WORLD, record), record.placement.at).pods
    told = {(name, claim.uid, claim.name, claim.pool, claim.since) for name in held for claim in held[name].claims}
    assert told == {(pod.node_name, pod.uid, pod.name, pod.pool, pod.scheduled_at) for pod in pods}
    assert {name: (view.used.gpus, view.allocatable.gpus, view.logical) for name, view in held.items()} == {
        "h200-01": (4, 8, True),
        "b200-01": (1, 4, True),
    }


def test_a_run_that_waits_holds_nothing() -> None:
    waiting = record_of(spec_of())
    assert claims(waiting, waiting.launched_at + timedelta(days=1)) == []
