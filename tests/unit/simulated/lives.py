"""Runs of the simulated fleet for tests, and what they say."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from starforge.adapters.simulated.driver import lines
from starforge.adapters.simulated.plan import EXIT_CODE, OUTCOME, SECONDS, Outcome
from starforge.adapters.simulated.record import Placement, Record, machines
from starforge.adapters.simulated.scheduler import place
from starforge.adapters.simulated.timeline import Timeline, timeline
from starforge.adapters.simulated.world import FakeNode, World
from starforge.domain.names import Digest, JobId, RunKey, run_name
from starforge.domain.ports import LaunchOrder, Signed
from starforge.domain.spec import Deadlines, EnvVar, FleetDefaults, JobSpec, PoolDraft, SpecDraft
from starforge.domain.spec_rules import freeze
from starforge.domain.unframing import FrameParser, Parsed

START = datetime(2026, 1, 1, tzinfo=UTC)
LATER = START + timedelta(days=1)
DEFAULTS = FleetDefaults("simulated", "example/train:1", 1, "2Gi", "1Gi", Deadlines(0, 1800, 0), 30)
SMALL = (FakeNode("h200-01", "h200", 8, 64), FakeNode("b200-01", "b200", 4, 64))
TWO_POOLS = (PoolDraft("train", "h200", 1, 4), PoolDraft("eval", "b200", 1, 1))
NONCE = "nonce-1"


class HandClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def spec_of(
    outcome: Outcome | None = None, *, seconds: float | None = None, pools: tuple[PoolDraft, ...] = TWO_POOLS
) -> JobSpec:
    wishes = {OUTCOME: outcome, SECONDS: seconds, EXIT_CODE: 3 if outcome is Outcome.FAIL else None}
    env = tuple(EnvVar(name, str(value)) for name, value in wishes.items() if value is not None)
    return freeze(SpecDraft("digits", ("python3", "train.py"), pools, env=env), DEFAULTS)


def run_of(number: int) -> RunKey:
    return RunKey(JobId(f"job-{number}"), 1)


def record_of(spec: JobSpec, *, number: int = 1, at: datetime = START) -> Record:
    run = run_of(number)
    return Record(run, run_name(spec.name, run), NONCE, spec, at)


def order_of(spec: JobSpec, *, number: int = 1) -> LaunchOrder:
    run, nowhere = run_of(number), Signed("GET", "file:///nowhere.zip", (), START)
    return LaunchOrder(run, run_name(spec.name, run), spec, nowhere, Digest(""), "", nowhere, None, NONCE)


def placed(world: World, record: Record) -> Record:
    """The record with the nodes that it gets when it is alone."""
    (found,) = place(world, [record], after=START - timedelta(days=1), until=LATER)
    return found


def life_of(spec: JobSpec, *, world: World | None = None, number: int = 1) -> Timeline:
    world = world or World(nodes=SMALL)
    return timeline(world, placed(world, record_of(spec, number=number)))


def placed_at(record: Record, at: datetime) -> Record:
    return replace(record, placement=Placement(at, ("h200-01",) * len(machines(record.spec))))


def said(life: Timeline, until: datetime) -> Parsed:
    """What the platform reads in the driver's stream."""
    return FrameParser(trusts=lambda nonce: nonce == NONCE).feed(lines(life, until))
