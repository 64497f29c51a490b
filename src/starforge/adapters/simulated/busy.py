"""What a busy organisation submits: an endless, repeatable stream of jobs for `starforge dev --simulate N`."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import TypeVar

from starforge.adapters.simulated.busy_code import MODELS, code_of
from starforge.adapters.simulated.plan import OUTCOME, Outcome
from starforge.domain.actions.submit import Submission
from starforge.domain.spec import DeadlinesDraft, EnvVar, Label, PoolDraft, SpecDraft

T = TypeVar("T")

_LIFE_S = 180.0  # simulated seconds of a usual life, with its waiting
_MISSING_SERIES = "gb300"
_HOPELESS_WAIT_S = 120
_PROJECTS = {"vision": 4, "language": 5, "speech": 2, "robotics": 1}
_PEOPLE = ("ada", "grace", "katherine", "alan", "edsger", "barbara")
_SIZES = {(1, 1): 8, (1, 2): 5, (1, 4): 3, (1, 8): 2, (2, 8): 1}
_STAGES = {"pretrain": 3, "finetune": 5, "sweep": 4, "eval": 2}


@dataclass(frozen=True)
class BusyJob:
    """A job to submit `after_s` simulated seconds after the one before, and to cancel `cancel_after_s` after that."""

    submission: Submission
    after_s: float
    cancel_after_s: float | None


def submissions(n: int, seed: int) -> Iterator[BusyJob]:
    """Jobs without an end: the first `n` at once, then at the pace at which about `n` are alive.

    ValueError if `n` is less than 1.
    """
    if n < 1:
        raise ValueError(f"A busy cluster needs 1 job or more, not {n}.")
    chance = Random(f"busy/{seed}")  # noqa: S311 - repeatable on purpose, nothing secret
    number = 0
    while True:
        number += 1
        yield _job(number, chance, after_s=0.0 if number <= n else chance.expovariate(n / _LIFE_S))


def _job(number: int, chance: Random, *, after_s: float) -> BusyJob:
    project, stage = _pick(_PROJECTS, chance), _pick(_STAGES, chance)
    model = chance.choice(MODELS)
    hopeless = chance.random() < 0.02
    draft = SpecDraft(
        name=f"{model} {stage} {number}",
        project=project,
        description=f"{stage} of {model}, asked for by {chance.choice(_PEOPLE)}" if chance.random() < 0.5 else None,
        command=("python3", "train.py", "--model", model, "--stage", stage),
        env=_env(chance),
        pools=_pools(stage, chance, hopeless=hopeless),
        deadlines=DeadlinesDraft(pre_running_seconds=_HOPELESS_WAIT_S if hopeless else None),
        labels=(Label("model", model), Label("stage", stage), Label("owner", chance.choice(_PEOPLE))),
        priority=chance.choice((0, 0, 0, 0, 10, -10)),
    )
    cancel_after_s = chance.uniform(2, _LIFE_S) if chance.random() < 0.08 else None
    return BusyJob(Submission(draft, code_of(model, stage)), after_s, cancel_after_s)


def _env(chance: Random) -> tuple[EnvVar, ...]:
    """Usual variables; a few jobs say themselves that they fail, so that any seed shows some failures."""
    env = (EnvVar("LEARNING_RATE", f"{10 ** chance.uniform(-5, -2):.6f}"), EnvVar("BATCH_SIZE", "256"))
    return (*env, EnvVar(OUTCOME, Outcome.FAIL.value)) if chance.random() < 0.05 else env


def _pools(stage: str, chance: Random, *, hopeless: bool) -> tuple[PoolDraft, ...]:
    machines, gpus = _pick(_SIZES, chance)
    series = _MISSING_SERIES if hopeless else chance.choice(("h200", "h200", "b200"))
    trainers = PoolDraft("train", series, machines, gpus, cpus=4 * gpus, memory="64Gi")
    if stage not in ("pretrain", "finetune") or chance.random() < 0.6:
        return (trainers,)
    return (trainers, PoolDraft("eval", "b200", machines=1, gpus_per_machine=1, cpus=4, memory="32Gi"))


def _pick(weights: dict[T, int], chance: Random) -> T:
    return chance.choices(list(weights), list(weights.values()))[0]
