"""Whichever process is killed, and wherever it is: every job ends as if nobody had been.

What a process leaves behind is what it has done outside, so it has been killed at every line once it was killed after
each of its effects. A life is lived once undisturbed, with every effect of gateway, workers, ticks and observer
counted. Then it is lived again for each of them, and whoever had it is killed right after; others go on when its lease
is over.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import pytest

from starforge.domain.actions.cancel import Wish, cancel
from starforge.domain.actions.enforce_deadlines import enforce_deadlines
from starforge.domain.actions.perform import LEASE_S
from starforge.domain.actions.retry import Again, retry
from starforge.domain.actions.submit import Submission, submit
from starforge.domain.capsule import InlineFile, PackedCode
from starforge.domain.errors import CodeRefused, Problem
from starforge.domain.job import JobState
from starforge.domain.names import JobId
from starforge.domain.observation import RunPhase
from starforge.domain.ports import StopAnswer
from starforge.domain.reason import ReasonCode, reason
from starforge.domain.spec import SpecDraft
from starforge.domain.timeline import CommandFailed
from tests.unit.actions.fakes import START, Crash
from tests.unit.actions.killing import Killer, Mortal
from tests.unit.actions.world import ANN, DRAFT, FILES, World, head, with_limits

NewWorld = Callable[[], World]
SEVERAL = 10
EVER = timedelta(days=3650)


@dataclass
class Life:
    """One job in a world of mortals; each step is done again by another process if one was killed at it."""

    mortal: Mortal
    killer: Killer
    submitted: JobId | None = None

    @property
    def world(self) -> World:
        return self.mortal.world

    @property
    def job(self) -> JobId:
        assert self.submitted
        return self.submitted

    def again(self, step: Callable[[], object]) -> None:
        while True:
            try:
                step()
                return
            except Crash:
                self.mortal.restart()

    def begins(self) -> None:
        """From here on it is a life of its own."""
        self.killer.begin()

    def submits(self, draft: SpecDraft = DRAFT) -> None:
        """As a client does, with a key, until it is answered."""

        def asked() -> None:
            self.submitted = submit(self.world.ports, Submission(draft, FILES, "key"), ANN).job.id

        self.again(asked)

    def until(self, there: Callable[[], bool]) -> None:
        """Workers and beat go on; what was killed holds its lease until that runs out."""
        for _ in range(80):
            try:
                enforce_deadlines(self.world.ports)
                self.world.work()
            except Crash:
                self.world.clock.forward(LEASE_S)
            if there():
                return
            self.world.clock.forward(20)
        raise AssertionError("it does not come")

    def comes_to(self, state: JobState) -> None:
        self.until(lambda: self.world.job(self.job).state is state)

    def runs(self) -> None:
        self.comes_to(JobState.PENDING)
        self.sees(RunPhase.RUNNING)
        self.world.fleet.looks[self.world.run(self.job)] = self.world.picture(self.job, RunPhase.RUNNING, head())
        self.says("hello")

    def sees(self, phase: RunPhase) -> None:
        picture = self.world.picture(self.job, phase, head())
        self.again(lambda: self.world.observer.observe([picture]))

    def says(self, *texts: str) -> None:
        lines = self.world.lines(self.job, *texts)
        self.again(lambda: self.world.observer.observe([lines]))

    def exits(self, code: int, phase: RunPhase) -> None:
        self.says(self.world.exit(self.job, code))
        self.sees(phase)

    def is_canceled(self) -> None:
        self.again(lambda: cancel(self.world.ports, self.job, Wish(ANN, grace_s=20)))

    def ends(self) -> None:
        self.until(lambda: self.world.job(self.job).ended and not self.world.due())


def succeeds(life: Life) -> None:
    life.begins()
    life.submits(with_limits())
    life.runs()
    life.exits(0, RunPhase.SUCCEEDED)
    life.ends()


def its_code_is_refused(life: Life) -> None:
    def refuse(files: Sequence[InlineFile], into: object) -> PackedCode:
        raise CodeRefused([Problem("INVALID", ("code",), "It is no code.")])

    life.world.packer.pack_files = refuse  # type: ignore[method-assign]
    life.begins()
    life.submits()
    life.ends()


def its_launch_is_refused(life: Life) -> None:
    life.world.fleet.refuses = reason(ReasonCode.QUOTA, "No more than 8 GPUs.", START)
    life.begins()
    life.submits()
    life.ends()


def is_canceled_before_it_runs(life: Life) -> None:
    life.submits()
    life.comes_to(JobState.PENDING)
    life.begins()
    life.is_canceled()
    life.ends()


def stops_when_it_is_asked(life: Life) -> None:
    life.submits()
    life.runs()
    life.begins()
    life.is_canceled()
    life.until(lambda: bool(life.world.fleet.stops))
    life.exits(143, RunPhase.STOPPED)
    life.ends()


def does_not_stop_when_it_is_asked(life: Life) -> None:
    life.submits()
    life.runs()
    life.begins()
    life.is_canceled()
    life.ends()


def nobody_can_ask_it_to_stop(life: Life) -> None:
    life.world.fleet.answer = StopAnswer.NOBODY_TO_ASK
    life.submits()
    life.runs()
    life.begins()
    life.is_canceled()
    life.ends()


def never_starts(life: Life) -> None:
    life.submits(with_limits(pre_running=40))
    life.comes_to(JobState.PENDING)
    life.begins()
    life.ends()


def runs_for_too_long(life: Life) -> None:
    life.submits(with_limits(active=40))
    life.runs()
    life.begins()
    life.ends()


def is_retried(life: Life) -> None:
    life.submits()
    life.runs()
    life.exits(1, RunPhase.FAILED)
    life.ends()
    life.begins()
    life.again(lambda: retry(life.world.ports, life.job, Again(ANN, "retry")))
    life.runs()
    life.exits(0, RunPhase.SUCCEEDED)
    life.ends()


LIVES: dict[Callable[[Life], None], tuple[JobState, ReasonCode | None]] = {
    succeeds: (JobState.SUCCEEDED, None),
    its_code_is_refused: (JobState.FAILED, ReasonCode.CAPSULE_INVALID),
    its_launch_is_refused: (JobState.FAILED, ReasonCode.QUOTA),
    is_canceled_before_it_runs: (JobState.CANCELED, ReasonCode.CANCELED),
    stops_when_it_is_asked: (JobState.CANCELED, ReasonCode.CANCELED),
    does_not_stop_when_it_is_asked: (JobState.CANCELED, ReasonCode.CANCELED),
    nobody_can_ask_it_to_stop: (JobState.CANCELED, ReasonCode.CANCELED),
    never_starts: (JobState.FAILED, ReasonCode.PRERUNNING_DEADLINE),
    runs_for_too_long: (JobState.FAILED, ReasonCode.ACTIVE_DEADLINE),
    is_retried: (JobState.SUCCEEDED, None),
}
EVERY: dict[Callable[[Life], None], int] = {is_retried: 3}
"""A second attempt has the effects of a first one again: every third of them will do."""


@dataclass(frozen=True)
class Story:
    """What is left of a life for people to read."""

    states: list[JobState]
    told: Counter[tuple[str, str]]
    log: list[str]
    objects: list[str]


def lived(world: World, live: Callable[[Life], None], killer: Killer) -> tuple[Life, Story]:
    life = Life(Mortal(world, killer), killer)
    live(life)
    entries = [(entry.type.value, entry.message) for entry in world.entries(life.job)]
    log = [line.text for line in world.log(life.job)]
    kinds = sorted(key.replace(life.job, "job") for key in world.objects.objects)
    return life, Story(world.states(life.job), Counter(entries), log, kinds)


def is_well(life: Life, expected: tuple[JobState, ReasonCode | None]) -> None:
    """It ended with one true reason, nothing was doubled, and nothing is left."""
    world, job = life.world, life.world.job(life.job)
    why = job.attempt.reason
    assert (job.state, why.code if why else None) == expected
    assert job.attempt.logs_archived_at
    assert job.attempt.released_at
    assert world.fleet.orders == {}
    assert set(life.mortal.created.values()) <= {1}
    assert world.sql.due(at=world.clock.now + EVER, limit=9) == []
    positions = [row.position for row in world.feed()]
    assert positions == list(range(1, len(positions) + 1))
    assert max(Counter(row.position for row in world.published).values()) == 1
    assert [entry for entry in world.entries(life.job) if isinstance(entry.detail, CommandFailed)] == []


@pytest.mark.parametrize("live", LIVES, ids=lambda live: str(live.__name__))
def test_a_process_that_is_killed_anywhere_changes_no_end(new_world: NewWorld, live: Callable[[Life], None]) -> None:
    calm = Killer()
    life, story = lived(new_world(), live, calm)
    is_well(life, LIVES[live])
    for effect in range(1, calm.effects + 1, EVERY.get(live, 1)):
        killer = Killer(frozenset({effect}))
        life, same = lived(new_world(), live, killer)
        assert killer.killed
        is_well(life, LIVES[live])
        assert same == story, killer.killed


def test_nor_do_several_that_are_killed(new_world: NewWorld) -> None:
    chance = random.Random(5)
    calm = Killer()
    _, story = lived(new_world(), succeeds, calm)
    for _ in range(SEVERAL):
        killer = Killer(frozenset(chance.sample(range(1, calm.effects + 1), 4)))
        life, same = lived(new_world(), succeeds, killer)
        assert len(killer.killed) > 1
        is_well(life, LIVES[succeeds])
        assert same == story, killer.killed
