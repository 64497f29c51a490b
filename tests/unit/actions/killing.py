"""Processes that are killed after any one of their effects on what is outside, or sleep before any of their calls."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from starforge.domain.actions.observe import Observer
from starforge.domain.names import RunKey
from starforge.domain.ports import LaunchOrder
from tests.unit.actions.fakes import Crash, as_port
from tests.unit.actions.world import World

EFFECTS = frozenset({
    "store.commit", "store.take", "fleet.launch", "fleet.stop", "fleet.delete", "objects.put", "objects.delete",
    "publish", "nudge",
})  # fmt: skip
"""Calls that change what is outside, and so what a process leaves behind that dies after them."""


class Hand(Protocol):
    """What a hand does to processes, before and after each of their calls."""

    def calls(self, name: str) -> None: ...

    def called(self, name: str) -> None: ...


@dataclass
class Killer:
    """Kills whoever makes the effects with these numbers, from 1 on, right after each; counts all since `begin`."""

    at: frozenset[int] = frozenset()
    effects: int = 0
    killed: list[str] = field(default_factory=list)
    _begun: bool = False

    def begin(self) -> None:
        """What comes now is what may be killed: what came before is shared with a life in which that was tried."""
        self._begun = True

    def calls(self, name: str) -> None: ...

    def called(self, name: str) -> None:
        if not self._begun or name not in EFFECTS:
            return
        self.effects += 1
        if self.effects in self.at:
            self.killed.append(f"after {name}, effect {self.effects}")
            raise Crash


@dataclass
class Sleeper:
    """Puts whoever makes call number `at` to sleep before it, while `meanwhile` is done by others."""

    at: int
    meanwhile: Callable[[], None] = lambda: None
    count: int = 0
    slept: str | None = None

    def calls(self, name: str) -> None:
        self.count += 1
        if self.count == self.at and not self.slept:
            self.slept = f"before {name}"
            self.meanwhile()

    def called(self, name: str) -> None: ...


class _Watched:
    def __init__(self, port: object, name: str, hand: Hand) -> None:
        self._port, self._name, self._hand = port, name, hand

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        return _watched(found, f"{self._name}.{name}", self._hand) if callable(found) else found


def _watched(call: Callable[..., Any], name: str, hand: Hand) -> Callable[..., Any]:
    def called(*args: Any, **kwargs: Any) -> Any:
        hand.calls(name)
        answer = call(*args, **kwargs)
        hand.called(name)
        return answer

    return called


@dataclass
class Mortal:
    """A world whose processes are in the hand of something; `created` counts how often each run came into being."""

    world: World
    hand: Hand
    created: Counter[RunKey] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        world, hand = self.world, self.hand
        launch = world.fleet.launch

        def counted(order: LaunchOrder) -> Any:
            self.created[order.run] += order.run not in world.fleet.orders
            return launch(order)

        world.fleet.launch = counted  # type: ignore[method-assign]
        world.ports = replace(
            world.ports,
            store=as_port(_Watched(world.store, "store", hand)),
            fleet=as_port(_Watched(world.fleet, "fleet", hand)),
            objects=as_port(_Watched(world.objects, "objects", hand)),
            packer=as_port(_Watched(world.packer, "packer", hand)),
            nudge=_watched(world.ports.nudge, "nudge", hand),
            publish=_watched(world.ports.publish, "publish", hand),
            scratch=_watched(world.ports.scratch, "scratch", hand),
        )
        self.restart()

    def restart(self) -> None:
        """Another process takes the place of one that was killed, and knows nothing."""
        self.world.observer = Observer(self.world.ports)


__all__ = ["EFFECTS", "Killer", "Mortal", "Sleeper"]
