from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from starforge.cli.batch.persistence import Persistence
from starforge.cli.outage import Patience
from starforge.domain.errors import Outside, StarForgeError, UserMistake


@dataclass
class Scene:
    """A clock that only sleeping moves, and what was said."""

    at: float = 0
    sleeps: list[float] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.at += seconds

    def persistence(self) -> Persistence:
        patience = Patience(first_wait=1, longest_wait=8, give_up=60)
        return Persistence(self.notes.append, patience, self.sleep, lambda: self.at)


def fails(times: int, error: Callable[[], StarForgeError]) -> Callable[[], str]:
    left = [error() for _ in range(times)]

    def call() -> str:
        if left:
            raise left.pop()
        return "done"

    return call


def test_what_works_at_once_says_nothing() -> None:
    scene = Scene()
    assert scene.persistence().ask(lambda: 7) == 7
    assert (scene.sleeps, scene.notes) == ([], [])


def test_an_outage_is_waited_out_with_longer_and_longer_waits() -> None:
    scene = Scene()
    assert scene.persistence().ask(fails(5, lambda: Outside("Away."))) == "done"
    bounds = [(0.5, 1), (1, 2), (2, 4), (4, 8), (4, 8)]
    assert all(low <= slept <= high for slept, (low, high) in zip(scene.sleeps, bounds, strict=True))
    assert scene.notes == ["Away. Trying again …", "It goes on."]


def test_a_time_to_wait_that_is_named_is_waited() -> None:
    scene = Scene()
    scene.persistence().ask(fails(2, lambda: Outside("Slow down.", retry_after_s=30)))
    assert scene.sleeps == [30, 30]


def test_it_gives_up_at_last() -> None:
    scene = Scene()
    with pytest.raises(Outside):
        scene.persistence().ask(fails(10_000, lambda: Outside("Away.")))
    assert 60 < scene.at < 80


def test_what_waiting_does_not_change_is_raised_at_once() -> None:
    scene = Scene()
    with pytest.raises(UserMistake):
        scene.persistence().ask(fails(1, lambda: UserMistake([])))
    assert scene.sleeps == []
