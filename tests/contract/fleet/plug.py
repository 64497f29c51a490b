"""What an adapter of the Fleet port gives to be put through the contract, and how the suite reads its watch."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum

from starforge.domain.logs import DRIVER
from starforge.domain.names import RunKey
from starforge.domain.observation import LogSeen, RunPhase, RunSeen, Seen
from starforge.domain.ports import Fleet, LaunchOrder, Resume
from starforge.domain.unframing import FrameParser
from starforge.domain.wire import Exit, Message


class Code(Enum):
    """Code that an order runs. SUCCEEDS prints 10 lines or more, one after the other, and takes a second or more."""

    SUCCEEDS = "succeeds"
    FAILS = "fails with exit code 3"
    RUNS_ON = "runs until it is stopped"


@dataclass(frozen=True)
class FleetUnderTest:
    """A fleet with nothing in it, a way to order code on it (a new run each time), and the most a life may take."""

    fleet: Fleet
    order: Callable[[Code], LaunchOrder]
    life_s: float


@dataclass
class Reader:
    """Reads the streams of one run as the platform does: keeps cursors, takes frames apart, trusts one nonce."""

    run: RunKey
    nonce: str
    lines: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    resumes: dict[str, Resume] = field(default_factory=dict)
    _parsers: dict[str, FrameParser] = field(default_factory=dict)

    def take(self, seen: LogSeen) -> None:
        parser = self._parsers.setdefault(seen.source, FrameParser(trusts=self.nonce.__eq__))
        parsed = parser.feed(seen.lines)
        own = parsed.container if seen.source == DRIVER else ()
        self.lines += [line.text for line in (*own, *parsed.lines)]
        self.messages += parsed.messages
        self.resumes[seen.source] = Resume(seen.cursor, seen.closed)

    @property
    def exits(self) -> list[Exit]:
        return [message for message in self.messages if isinstance(message, Exit)]


class Watching:
    """A watch of the fleet, read in the test itself: it tells something once a second or more often."""

    def __init__(self, under_test: FleetUnderTest, readers: Sequence[Reader] = ()) -> None:
        self._life_s = under_test.life_s
        self._readers = {reader.run: reader for reader in readers}
        self._stop = threading.Event()
        self._items = iter(under_test.fleet.watch(self._resume, self._stop))
        self.seen: list[Seen] = [next(self._items)]

    def until(self, what: str, happened: Callable[[Seen], bool]) -> Seen:
        """Read on until `happened`; fails, saying `what` was missed, after a life's time."""
        deadline = time.monotonic() + self._life_s
        for seen in self._items:
            self._take(seen)
            if happened(seen):
                return seen
            assert time.monotonic() < deadline, f"{what} was not seen in {self._life_s} s, but {self.seen[-20:]}"
        raise AssertionError(f"The watch ended by itself before {what} was seen.")

    def until_phase(self, run: RunKey, *phases: RunPhase) -> RunSeen:
        seen = self.until(" or ".join(phases), lambda seen: is_phase(seen, run, *phases))
        assert isinstance(seen, RunSeen)
        return seen

    def rest(self) -> Iterator[Seen]:
        """Stop the watch and read what it still tells."""
        self._stop.set()
        for seen in self._items:
            self._take(seen)
            yield seen

    def phases(self, run: RunKey) -> list[RunPhase]:
        """The phases of a run in the order in which they were told, repeats left out."""
        told = [seen.phase for seen in self.seen if isinstance(seen, RunSeen) and seen.run == run]
        return [phase for index, phase in enumerate(told) if index == 0 or told[index - 1] is not phase]

    def _resume(self, run: RunKey, source: str) -> Resume:
        reader = self._readers.get(run)
        return reader.resumes.get(source, Resume(None)) if reader else Resume(None)

    def _take(self, seen: Seen) -> None:
        self.seen.append(seen)
        if isinstance(seen, LogSeen) and seen.run in self._readers:
            self._readers[seen.run].take(seen)


def is_phase(seen: Seen, run: RunKey, *phases: RunPhase) -> bool:
    return isinstance(seen, RunSeen) and seen.run == run and seen.phase in phases


def undated(seen: RunSeen) -> RunSeen:
    """A picture without the time at which it was taken."""
    pods = tuple(replace(pod, observed_at=datetime.min) for pod in seen.pods)
    return replace(seen, at=datetime.min, pods=tuple(sorted(pods, key=lambda pod: pod.uid)), rayjob=None)
