"""The simulated fleet, whose clock goes on by a quarter of a second each time that it is read."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from starforge.adapters.simulated.fleet import SimulatedFleet
from starforge.adapters.simulated.plan import EXIT_CODE, OUTCOME, SECONDS, Outcome
from starforge.domain.names import Digest, RunKey, job_id, run_name
from starforge.domain.ports import LaunchOrder, Signed
from starforge.domain.spec import Deadlines, EnvVar, FleetDefaults, PoolDraft, SpecDraft
from starforge.domain.spec_rules import freeze
from tests.contract.fleet.plug import Code, FleetUnderTest

DEFAULTS = FleetDefaults("simulated", "example/train:1", 1, "2Gi", "1Gi", Deadlines(0, 1800, 0), 30)
_START = datetime(2026, 1, 1, tzinfo=UTC)
_NOWHERE = Signed("GET", "file:///nowhere.zip", (), _START)
_ENV = {
    Code.SUCCEEDS: {OUTCOME: Outcome.SUCCEED.value, SECONDS: "20"},
    Code.FAILS: {OUTCOME: Outcome.FAIL.value, SECONDS: "20", EXIT_CODE: "3"},
    Code.RUNS_ON: {OUTCOME: Outcome.FOREVER.value},
}


class SteppingClock:
    """A clock for which time goes by only as it is looked at."""

    def __init__(self, step: timedelta) -> None:
        self._now, self._step = _START, step

    def __call__(self) -> datetime:
        self._now += self._step
        return self._now


@contextmanager
def simulated(folder: Path) -> Iterator[FleetUnderTest]:
    clock = SteppingClock(timedelta(seconds=0.25))
    fleet = SimulatedFleet(defaults=DEFAULTS, state=folder / "fleet.sqlite", clock=clock, poll_s=0)
    numbers = count(1)
    yield FleetUnderTest(fleet, lambda code: order_of(code, next(numbers)), life_s=60)


def order_of(code: Code, number: int) -> LaunchOrder:
    run = RunKey(job_id(f"{number:020}"), 1)
    pools = (PoolDraft("train", "h200", 2, 4), PoolDraft("eval", "b200", 1, 1))
    env = tuple(EnvVar(name, value) for name, value in _ENV[code].items())
    spec = freeze(SpecDraft("contract", ("python3", "train.py"), pools, env=env), DEFAULTS)
    return LaunchOrder(run, run_name(spec.name, run), spec, _NOWHERE, Digest(""), "", _NOWHERE, None, f"nonce-{number}")
