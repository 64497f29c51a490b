"""What a change of a playground is told as: whether it is told at all, and entries of its timeline."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from starforge.domain.changes import Changes
from starforge.domain.playground import Playground, PlaygroundState
from starforge.domain.reason import Reason
from starforge.domain.teardown import Teardown, TeardownState
from starforge.domain.telling import clock_details, reason_details
from starforge.domain.timeline import Detail, Entry, PlaygroundStateChanged, Severity, TeardownChanged

_Told = tuple[Detail, Severity, str]


def write_playground(
    changes: Changes,
    before: Playground | None,
    after: Playground,
    at: datetime,
    new_id: Callable[[], str],
    *,
    also: bool = False,
) -> None:
    """Add to `changes` the new version of a playground and everything that its timeline tells of it.

    That it was seen again, and nothing else, is written in silence, unless something of it is told `also`.
    """
    if before == after and not also:
        return
    quiet = not also and before is not None and replace(before, observed_at=after.observed_at, run=after.run) == after
    changes.playground(after if quiet else replace(after, updated_at=max(at, after.updated_at)), told=not quiet)
    for detail, severity, message in _details(before, after):
        entry = Entry(f"event-{new_id()}", after.key, severity, message, at, at, detail, fleet=after.spec.machine.fleet)
        changes.entries.append(entry)


def _details(before: Playground | None, after: Playground) -> Iterator[_Told]:
    if before is None or before.state is not after.state:
        detail = PlaygroundStateChanged(after.state, before.state if before else None, _explains(after))
        yield detail, _severity(after), _sentence(before, after)
    elif not after.ended:
        yield from reason_details(before.reason, after.reason)
    yield from clock_details(before.clocks if before else (), after.clocks)
    yield from _teardown(before.teardown if before else None, after.teardown)


def _explains(after: Playground) -> Reason | None:
    return after.reason if after.ended else None


def _severity(after: Playground) -> Severity:
    return {PlaygroundState.FAILED: Severity.ERROR, PlaygroundState.EXPIRING: Severity.WARNING}.get(
        after.state, Severity.INFO
    )


def _sentence(before: Playground | None, after: Playground) -> str:
    why = f" {after.reason.message}" if after.reason and after.ended else ""
    if after.state is PlaygroundState.EXPIRING:
        return f"It is stopped at {after.expires_at:%H:%M:%S} UTC unless somebody extends or uses it."
    if after.state is PlaygroundState.READY:
        again = before is not None and before.state is PlaygroundState.EXPIRING
        return "It goes on, as it was extended or used." if again else "It answers requests."
    return {
        PlaygroundState.STARTING: "It was asked for and is being started.",
        PlaygroundState.STOPPED: f"It has ended.{why}",
        PlaygroundState.FAILED: f"It has failed.{why}",
    }[after.state]


def _teardown(old: Teardown | None, new: Teardown | None) -> Iterator[_Told]:
    if new is None or (old and old.state is new.state):
        return
    held = new.state is TeardownState.BLOCKED
    sentence = {
        TeardownState.BLOCKED: new.reason.message if new.reason else "What it has in the cluster refuses to go.",
        TeardownState.RELEASED: "Nothing of it is left in the cluster.",
    }.get(new.state, "What it has in the cluster is being removed.")
    yield TeardownChanged(new), Severity.WARNING if held else Severity.INFO, sentence
