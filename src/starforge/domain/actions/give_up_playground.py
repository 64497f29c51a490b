"""What becomes of a playground whose command fails: it says what it waits for, and ends if it waits in vain."""

from dataclasses import replace
from datetime import timedelta

from starforge.domain.actions.give_up import ADVICE, failure
from starforge.domain.actions.playgrounds import guarded_playground, leased
from starforge.domain.actions.stop_playground import end_playground
from starforge.domain.changes import Changes, Command, Lease, Retry
from starforge.domain.playground import Playground, PlaygroundState
from starforge.domain.playground_telling import write_playground
from starforge.domain.ports import Ports
from starforge.domain.reason import Reason, ReasonCode, keep_since, reason
from starforge.domain.teardown import TeardownState, looked
from starforge.domain.timeline import CommandKind


def give_up_playground(ports: Ports, lease: Lease, error: str, *, again_s: float) -> None:
    """Park a start that fails for ever, with the end of its playground; a removal is tried again for ever instead."""
    what = lease.command
    playground = leased(ports, what.run)

    def decide(found: Playground) -> Changes:
        at = ports.now()
        removal = what.kind is CommandKind.STOP_PLAYGROUND
        changes = Changes(retry=Retry(at + timedelta(seconds=again_s), error)) if removal else Changes(park=error)
        changes.entries.append(failure(ports, what, error, parked=not removal))
        if removal:
            write_playground(changes, found, _blocked(found, what, error, ports), at, ports.random)
        elif not found.ended:
            message = f"StarForge failed {what.tries} times to start it ({error}); quote {what.id}."
            why = reason(ReasonCode.INTERNAL, message, at, advice=ADVICE)
            end_playground(ports, changes, found, why, PlaygroundState.FAILED)
        return changes

    guarded_playground(ports, playground.id, decide, lease)


def explain_playground(ports: Ports, what: Command, why: Reason) -> None:
    """Note on a playground that its command waits because something outside can't be asked."""
    playground = leased(ports, what.run)
    guarded_playground(ports, playground.id, lambda found: _explained(ports, found, what, why))


def _explained(ports: Ports, found: Playground, what: Command, why: Reason) -> Changes:
    changes, at, after = Changes(), ports.now(), found
    left = found.teardown
    if what.kind is CommandKind.START_PLAYGROUND and found.state is PlaygroundState.STARTING:
        after = replace(found, reason=keep_since(why, found.reason))
    elif what.kind is CommandKind.STOP_PLAYGROUND and what.outages and left and not left.released_at:
        removal = looked(left, left.remaining, at, refused=why)
        after = replace(found, teardown=replace(removal, deleting_since=left.deleting_since))
    write_playground(changes, found, after, at, ports.random)
    return changes


def _blocked(found: Playground, what: Command, error: str, ports: Ports) -> Playground:
    teardown = found.teardown
    if teardown is None or teardown.state is TeardownState.RELEASED:
        return found
    message = f"What is left in the cluster can't be removed ({error}); it is tried again. Quote {what.id}."
    why = keep_since(reason(ReasonCode.TEARDOWN_BLOCKED, message, ports.now(), advice=ADVICE), teardown.reason)
    return replace(found, teardown=replace(teardown, state=TeardownState.BLOCKED, reason=why))
