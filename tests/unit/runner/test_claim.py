"""The claim as a file, and how it is tried again; the one over HTTP is in tests/integration/test_runner_pex.py."""

import threading
from pathlib import Path

from starforge.runner.attempt import ClaimTarget
from starforge.runner.claim import LONGEST_PAUSE_S, Claimed, claim


class Clock:
    """A clock that only pauses move; `then` is done in the pause of that number."""

    def __init__(self, then: dict[int, object] | None = None) -> None:
        self.now = 100.0
        self.pauses: list[float] = []
        self._then = then or {}

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        action = self._then.get(len(self.pauses))
        if callable(action):
            action()


def run(path: Path, clock: Clock, until: float | None) -> tuple[Claimed, list[str]]:
    said: list[str] = []
    target = ClaimTarget(path=str(path))
    return claim(target, until=until, say=said.append, clock=clock, pause=clock.pause), said


def test_the_first_claims_and_the_second_does_not(tmp_path: Path) -> None:
    assert run(tmp_path / "claim", Clock(), 200) == (Claimed.YES, [])
    assert run(tmp_path / "claim", Clock(), 200) == (Claimed.BEFORE, [])


def test_one_of_many_claims(tmp_path: Path) -> None:
    results: list[Claimed] = []
    threads = [
        threading.Thread(target=lambda: results.append(run(tmp_path / "claim", Clock(), 200)[0])) for _ in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(result.name for result in results) == ["BEFORE"] * 15 + ["YES"]


def test_a_store_that_comes_back_is_claimed(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    clock = Clock({3: folder.mkdir})
    claimed, said = run(folder / "claim", clock, None)
    assert claimed is Claimed.YES
    assert len(clock.pauses) == 3
    assert said == [
        "can't claim this attempt yet, trying again: the claim file can't be made: No such file or directory"
    ]


def test_it_gives_up_at_its_time_and_not_before(tmp_path: Path) -> None:
    clock = Clock()
    assert run(tmp_path / "no" / "claim", clock, 160.0)[0] is Claimed.NOT
    assert clock.now == 160.0
    assert max(clock.pauses) <= LONGEST_PAUSE_S
    assert clock.pauses[0] < 1


def test_a_time_that_is_over_still_tries_once(tmp_path: Path) -> None:
    assert run(tmp_path / "claim", Clock(), 0)[0] is Claimed.YES
