"""What all actions on playgrounds share: loading one, and changing it whoever else is at it."""

from collections.abc import Callable
from datetime import timedelta

from starforge.domain.actions.apply import GUARD_TRIES, apply
from starforge.domain.changes import Changes, Lease, NewCommand
from starforge.domain.errors import NotFound, StaleRevision
from starforge.domain.names import CommandId, PlaygroundId, RunKey, playground_of
from starforge.domain.playground import Playground
from starforge.domain.ports import Ports
from starforge.domain.timeline import CommandKind

Decide = Callable[[Playground], Changes | None]


def load_playground(ports: Ports, playground: PlaygroundId) -> Playground:
    """The playground; NotFound if there is none."""
    found = ports.store.playgrounds_by_id([playground]).get(playground)
    if found is None:
        raise NotFound(f"There is no playground {playground}.")
    return found


def leased(ports: Ports, run: RunKey) -> Playground:
    """The playground that a command is about."""
    playground = playground_of(run)
    if playground is None:
        raise NotFound(f"{run} is no playground.")
    return load_playground(ports, playground)


def guarded_playground(
    ports: Ports, playground: PlaygroundId, decide: Decide, lease: Lease | None = None
) -> Playground:
    """Load, decide and apply, again whenever somebody else changed it first; returns it as it is then.

    StaleRevision if the lease is over.
    """
    found = load_playground(ports, playground)
    for _ in range(GUARD_TRIES):
        changes = decide(found)
        if changes is None or changes.empty:
            return found
        try:
            apply(ports, changes, lease)
        except StaleRevision:
            before, found = found, load_playground(ports, playground)
            if (lease or ports.lease) and found.revision == before.revision:
                raise
            continue
        return load_playground(ports, playground)
    raise StaleRevision(
        f"{playground} was changed by others {GUARD_TRIES} times while it was being changed; try again."
    )


def command(ports: Ports, kind: CommandKind, playground: Playground, *, in_s: float = 0) -> NewCommand:
    """A new command for a playground."""
    due = ports.now() + timedelta(seconds=in_s)
    return NewCommand(CommandId(f"command-{ports.random()}"), kind, playground.key, due)
