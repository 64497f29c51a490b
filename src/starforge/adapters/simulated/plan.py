"""What will become of a run if nobody interferes: durations and outcome, from the seed, the run and its spec alone."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from random import Random

from starforge.adapters.simulated.record import machines
from starforge.adapters.simulated.world import World
from starforge.domain.errors import FleetRefused
from starforge.domain.names import RunKey
from starforge.domain.reason import ReasonCode, reason
from starforge.domain.spec import JobSpec

OUTCOME = "SIMULATED_OUTCOME"
SECONDS = "SIMULATED_SECONDS"
EXIT_CODE = "SIMULATED_EXIT_CODE"


class Outcome(StrEnum):
    """How a run ends; a spec may choose by the variable SIMULATED_OUTCOME."""

    SUCCEED = "SUCCEED"
    FAIL = "FAIL"
    OOM = "OOM"
    IMAGE_PULL = "IMAGE_PULL"
    FOREVER = "FOREVER"


_WEIGHTS = {Outcome.SUCCEED: 80, Outcome.FAIL: 14, Outcome.OOM: 4, Outcome.IMAGE_PULL: 2}


@dataclass(frozen=True)
class MachinePlan:
    """Simulated seconds of one machine: to pull, to start then, to be ready then; and to go when it is deleted."""

    pull_s: float
    start_s: float
    ready_s: float
    go_s: float


@dataclass(frozen=True)
class Plan:
    """Simulated seconds and steps. `last_step` is None for a run without an end; `stop_s` is its answer to SIGTERM."""

    outcome: Outcome
    exit_code: int
    create_s: float
    machines: tuple[MachinePlan, ...]
    driver_s: float
    steps: int
    step_s: float
    last_step: int | None
    stop_s: float
    ignores_sigterm: bool


def plan(world: World, run: RunKey, spec: JobSpec) -> Plan:
    """The plan of a run. ValueError if the spec's SIMULATED_… variables are not ones that can be followed."""
    wishes = {var.name: var.value for var in spec.env if var.value is not None}
    chance = world.chance(run, "plan")
    drawn = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
    outcome = Outcome(wishes[OUTCOME]) if OUTCOME in wishes else drawn
    steps, step_s = chance.randint(20, 120), chance.uniform(1.0, 4.0)
    if SECONDS in wishes:
        step_s = _positive(wishes[SECONDS]) / steps
    return Plan(
        outcome=outcome,
        exit_code=_exit_code(outcome, wishes.get(EXIT_CODE), chance),
        create_s=chance.uniform(0.2, 1.0),
        machines=tuple(_machine(chance) for _ in machines(spec)),
        driver_s=chance.uniform(1.0, 3.0),
        steps=steps,
        step_s=step_s,
        last_step=_last_step(outcome, steps, chance),
        stop_s=chance.uniform(0.2, 2.0),
        ignores_sigterm=chance.random() < 0.1,
    )


def check(world: World, run: RunKey, spec: JobSpec, at: datetime) -> None:
    """FleetRefused if the spec's SIMULATED_… variables are not ones that can be followed."""
    try:
        plan(world, run, spec)
    except ValueError as error:
        outcomes = ", ".join(Outcome)
        advice = f"{OUTCOME} is one of {outcomes}; {SECONDS} a number above 0; {EXIT_CODE} 1 to 255."
        message = f"The simulated fleet can't follow the env of the spec: {error}."
        raise FleetRefused(reason(ReasonCode.INVALID_SPEC, message, at, advice=advice)) from error


def _machine(chance: Random) -> MachinePlan:
    return MachinePlan(chance.uniform(1, 6), chance.uniform(0.2, 0.8), chance.uniform(0.5, 2.5), chance.uniform(1, 4))


def _last_step(outcome: Outcome, steps: int, chance: Random) -> int | None:
    breaks_at = chance.randint(1, steps - 1)
    if outcome is Outcome.FOREVER:
        return None
    return steps if outcome is Outcome.SUCCEED else breaks_at


def _exit_code(outcome: Outcome, wish: str | None, chance: Random) -> int:
    drawn = chance.choice((1, 1, 1, 2, 3))
    if outcome is not Outcome.FAIL:
        return 137 if outcome is Outcome.OOM else 0
    code = drawn if wish is None else int(wish)
    if not 1 <= code <= 255:
        raise ValueError(f"{EXIT_CODE} is {code}")
    return code


def _positive(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < 10**7:
        raise ValueError(f"{SECONDS} is {text}")
    return seconds
