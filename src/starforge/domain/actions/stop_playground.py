"""stopPlayground: whoever is first in the database wins; what has ended is left as it is."""

from starforge.domain.actions.playgrounds import command, guarded_playground
from starforge.domain.changes import Changes
from starforge.domain.job import Actor
from starforge.domain.names import PlaygroundId
from starforge.domain.playground import Playground, PlaygroundState, end
from starforge.domain.playground_telling import write_playground
from starforge.domain.ports import Ports
from starforge.domain.reason import Reason, ReasonCode, reason
from starforge.domain.timeline import Action, ActionRequested, CommandKind, Entry, Severity


def stop_playground(ports: Ports, playground: PlaygroundId, by: Actor) -> Playground:
    """End a playground and have its GPUs freed; NotFound if there is none. Safe to repeat."""
    return guarded_playground(ports, playground, lambda found: _asked(ports, found, by))


def _asked(ports: Ports, found: Playground, by: Actor) -> Changes | None:
    if found.ended:
        return None
    changes, at = Changes(), ports.now()
    message = f"{by.name} asked for it to end."
    detail = ActionRequested(Action.STOP, by)
    changes.entries.append(Entry(f"event-{ports.random()}", found.key, Severity.INFO, message, at, at, detail))
    end_playground(ports, changes, found, reason(ReasonCode.CANCELED, f"{by.name} stopped it.", at))
    return changes


def end_playground(
    ports: Ports,
    changes: Changes,
    found: Playground,
    why: Reason,
    to: PlaygroundState = PlaygroundState.STOPPED,
    *,
    before: Playground | None = None,
) -> None:
    """Add to `changes` that a playground ends, and the command that removes it; `before` is it as it is stored."""
    at = ports.now()
    write_playground(changes, before or found, end(found, to, why, at), at, ports.random)
    changes.commands.append(command(ports, CommandKind.STOP_PLAYGROUND, found))
