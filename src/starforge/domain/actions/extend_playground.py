"""extendPlayground: moves the expiry, never to an earlier time."""

from datetime import timedelta

from starforge.domain.actions.playgrounds import guarded_playground
from starforge.domain.changes import Changes
from starforge.domain.deadlines import ClockKind
from starforge.domain.errors import Problem, WrongState
from starforge.domain.job import Actor
from starforge.domain.names import PlaygroundId
from starforge.domain.playground import LIFE_MAX_S, Playground, postpone
from starforge.domain.playground_spec import TTL_MIN_S
from starforge.domain.playground_telling import write_playground
from starforge.domain.ports import Ports
from starforge.domain.timeline import Action, ActionRequested, Entry, Severity

_CLOCKS = (ClockKind.TIME_TO_LIVE, ClockKind.IDLE)


def extend_playground(ports: Ports, playground: PlaygroundId, seconds: int, by: Actor) -> Playground:
    """Have it expire `seconds` from now at the earliest; NotFound, WrongState if it does not answer requests.

    Safe to repeat: what would change nothing is not even told.
    """
    most = ports.fleet.defaults().playgrounds.max_s
    if not TTL_MIN_S <= seconds <= most:
        message = f"seconds must be {TTL_MIN_S} to {most:,}."
        raise WrongState([Problem("OUT_OF_RANGE", ("seconds",), message)])
    return guarded_playground(ports, playground, lambda found: _extended(ports, found, seconds, by))


def _extended(ports: Ports, found: Playground, seconds: int, by: Actor) -> Changes | None:
    if not found.answers:
        what = "has ended" if found.ended else "is starting, and its time begins when it is ready"
        raise WrongState([Problem("WRONG_STATE", ("id",), f"Playground {found.id} {what}; it can't be extended.")])
    at, changes = ports.now(), Changes()
    if at + timedelta(seconds=seconds) > (found.ready_at or at) + timedelta(seconds=LIFE_MAX_S):
        days = LIFE_MAX_S // 86400
        message = f"Playground {found.id} can't live for more than {days} days in all; start another one."
        raise WrongState([Problem("OUT_OF_RANGE", ("seconds",), message)])
    after = postpone(found, _CLOCKS, at + timedelta(seconds=seconds), at)
    if after == found:
        return None
    detail = ActionRequested(Action.EXTEND, by)
    message = f"{by.name} asked for it to live for at least {seconds} s more."
    changes.entries.append(Entry(f"event-{ports.random()}", found.key, Severity.INFO, message, at, at, detail))
    write_playground(changes, found, after, at, ports.random)
    return changes
