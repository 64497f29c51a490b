"""Notes on every live playground whether its fleet can be heard; nothing else is decided on silence."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from starforge.domain.actions.playgrounds import guarded_playground
from starforge.domain.changes import Changes
from starforge.domain.deadlines import AWAY, OUTAGE_GRACE, ClockKind, grace
from starforge.domain.playground import Playground
from starforge.domain.playground_telling import write_playground
from starforge.domain.ports import Ports
from starforge.domain.queries import PlaygroundFilter, Window
from starforge.domain.reason import ReasonCode

_PAGE = 100
_WAITS_FOR_CLUSTER = (ClockKind.PRE_RUNNING, ClockKind.IDLE)


@dataclass(frozen=True)
class Word:
    """What is noted at `at`, and since when it is so; `code` is the kind of the problem, None if all is well."""

    problem: str | None
    code: ReasonCode
    at: datetime
    since: datetime


def mark_playgrounds(ports: Ports, word: Word, still: Callable[[], bool]) -> bool:
    """Mark the live ones as stale, or as heard again, while it is `still` so; whether any was marked."""
    after, marked = None, False
    which = PlaygroundFilter(active=True, fleets=(ports.fleet.name,))
    while still():
        page = ports.store.playground_page(which, Window(_PAGE, after=after))
        for _, playground in page.rows:
            if _differs(playground, word):
                marked = True
                guarded_playground(ports, playground.id, lambda found: _marked(ports, found, word))
        if not page.has_next:
            break
        after = page.rows[-1][0]
    return marked


def _differs(playground: Playground, word: Word) -> bool:
    if playground.launched_at is None or playground.ended:
        return False
    if playground.stale_since is None or word.problem is None:
        return (playground.stale_since is None) != (word.problem is None)
    return playground.stale_code is not word.code


def _marked(ports: Ports, found: Playground, word: Word) -> Changes | None:
    if not _differs(found, word):
        return None
    changes, at = Changes(), word.at
    if word.problem is None:
        away = at - found.stale_since if found.stale_since else timedelta()
        clocks = grace(found.clocks, _WAITS_FOR_CLUSTER, at + OUTAGE_GRACE) if away >= AWAY else found.clocks
        after = replace(found, clocks=clocks, stale_since=None, stale_problem=None)
    else:
        begin = found.stale_since or max(word.since, found.launched_at or word.since)
        after = replace(found, stale_since=begin, stale_problem=word.problem, stale_code=word.code)
    write_playground(changes, found, after, at, ports.random)
    return changes
