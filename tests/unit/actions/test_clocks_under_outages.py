"""Clocks under any history of outages: none ends a job for time in which nobody could act, and each is enforced."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from starforge.domain.actions.enforce_deadlines import enforce_deadlines
from starforge.domain.actions.hear import hear
from starforge.domain.deadlines import AWAY, OUTAGE_GRACE
from starforge.domain.names import JobId
from starforge.domain.observation import RunPhase
from starforge.domain.reason import ReasonCode
from tests.unit.actions.fakes import START
from tests.unit.actions.world import World, head, with_limits

NewWorld = Callable[[], World]
TICK_S = 10
LIMIT_S = 100
LONGEST_S = 1000
OURS, FLEET = "ours", "fleet"
"""Workers, beat or database: in any of these cases nobody ticks and nobody writes down what is heard."""


@dataclass(frozen=True)
class Outage:
    what: str
    start_s: int
    length_s: int

    def has(self, second: int) -> bool:
        return self.start_s <= second < self.start_s + self.length_s


outages = st.lists(
    st.builds(
        Outage, st.sampled_from((OURS, FLEET)), st.integers(0, 30).map(lambda n: n * TICK_S),
        st.integers(1, 20).map(lambda n: n * TICK_S),
    ),
    max_size=5,
)  # fmt: skip


@dataclass
class History:
    """What happens to a job, tick by tick; `told` is the problem that the observer has last written down."""

    world: World
    outages: list[Outage]
    told: str | None = None

    def is_away(self, what: str, second: int) -> bool:
        return any(one.what == what and one.has(second) for one in self.outages)

    def tick(self, second: int) -> None:
        problem = "away" if self.is_away(FLEET, second) else None
        self.world.fleet.down = problem
        if self.is_away(OURS, second):
            return
        if problem != self.told:
            hear(self.world.ports, problem, tell=True)
            self.told = problem
        enforce_deadlines(self.world.ports)

    def lived(self, over: Callable[[], bool]) -> datetime:
        """When the clock ended the job."""
        for second in range(0, LONGEST_S, TICK_S):
            self.tick(second)
            if over():
                return self.world.clock.now
            self.world.clock.forward(TICK_S)
        raise AssertionError("no clock is enforced")

    def last_end(self, longer_than: timedelta) -> datetime:
        """When the last outage was over, of those that were not short; overlapping ones are one."""
        away = [second for second in range(0, LONGEST_S, TICK_S) if self._is_any(second)]
        spans: list[list[int]] = []
        for second in away:
            if spans and spans[-1][-1] == second - TICK_S:
                spans[-1].append(second)
            else:
                spans.append([second])
        ends = [span[-1] + TICK_S for span in spans if len(span) * TICK_S > longer_than.total_seconds()]
        return START + timedelta(seconds=max(ends, default=0))

    def _is_any(self, second: int) -> bool:
        return self.is_away(OURS, second) or self.is_away(FLEET, second)


def check(history: History, ended: datetime) -> None:
    before = [one for one in history.outages if START + timedelta(seconds=one.start_s) <= ended]
    past = History(history.world, before)
    due = START + timedelta(seconds=LIMIT_S)
    tick = timedelta(seconds=TICK_S)
    # One that goes over into another is known from when it was noticed on: its last seconds may seem to be a short one.
    unnoticed = AWAY if len(before) > 1 else timedelta()
    assert ended >= due
    assert ended >= past.last_end(AWAY) + OUTAGE_GRACE - unnoticed or past.last_end(AWAY) == START
    assert ended <= max(due, past.last_end(timedelta()) + OUTAGE_GRACE) + tick


def pending(world: World) -> JobId:
    return world.pending(with_limits(pre_running=LIMIT_S))


def running(world: World) -> JobId:
    job = world.running(with_limits(active=LIMIT_S))
    world.fleet.looks[world.run(job)] = world.picture(job, RunPhase.RUNNING, head())
    return job


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(outages, st.sampled_from((pending, running)))
@example([Outage(OURS, 10, 80)], pending)
@example([Outage(FLEET, 10, 80)], pending)
@example([Outage(FLEET, 10, 200), Outage(OURS, 150, 100)], running)
@example([Outage(OURS, 90, 100), Outage(FLEET, 200, 50)], running)
def test_a_clock_counts_no_time_in_which_nobody_could_act(
    new_world: NewWorld, outages: list[Outage], there: Callable[[World], JobId]
) -> None:
    world = new_world()
    job = there(world)
    history = History(world, outages)
    codes = (ReasonCode.PRERUNNING_DEADLINE, ReasonCode.ACTIVE_DEADLINE)

    def over() -> bool:
        attempt = world.job(job).attempt
        why = attempt.ending.reason if attempt.ending else attempt.reason
        return why is not None and why.code in codes

    check(history, history.lived(over))
