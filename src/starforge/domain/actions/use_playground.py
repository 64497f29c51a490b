"""Notes what a gateway answered for a playground, which keeps it from being idle."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from starforge.domain.actions.playgrounds import guarded_playground
from starforge.domain.changes import Changes
from starforge.domain.deadlines import ClockKind
from starforge.domain.names import PlaygroundId
from starforge.domain.playground import FIRST_TOKENS_KEPT, Answering, Playground, Usage, postpone
from starforge.domain.playground_telling import write_playground
from starforge.domain.ports import Ports


@dataclass(frozen=True)
class Use:
    """What one gateway saw since it told last. `active` requests are being answered by it right now.

    `first_tokens` are the seconds to the first token of each stream that had one; `ended_at` is when its last request
    ended, None if none did.
    """

    gateway: str
    active: int
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    first_tokens: tuple[float, ...] = ()
    ended_at: datetime | None = None


def note_use(ports: Ports, playground: PlaygroundId, use: Use) -> Playground:
    """Add what was used, and have the idle clock begin anew; NotFound if there is no such playground.

    To be called at most once a second for each gateway and playground, and while requests are answered at least each
    half minute, as a gateway that is silent for a minute is taken to answer none.
    """
    return guarded_playground(ports, playground, lambda found: _used(ports, found, use))


def _used(ports: Ports, found: Playground, use: Use) -> Changes:
    changes, at = Changes(), ports.now()
    after = replace(found, usage=_usage(found.usage, use, at), last_used_at=_latest(found.last_used_at, use.ended_at))
    if found.answers and (use.requests or use.active or use.ended_at):
        after = postpone(after, (ClockKind.IDLE,), at + timedelta(seconds=found.spec.idle_seconds), at)
    write_playground(changes, found, after, at, ports.random)
    return changes


def _usage(usage: Usage, use: Use, at: datetime) -> Usage:
    others = tuple(one for one in usage.heard(at).answering if one.gateway != use.gateway)
    mine = (Answering(use.gateway, use.active, at),) if use.active else ()
    return replace(
        usage,
        requests=usage.requests + use.requests,
        prompt_tokens=usage.prompt_tokens + use.prompt_tokens,
        completion_tokens=usage.completion_tokens + use.completion_tokens,
        first_tokens=(*usage.first_tokens, *use.first_tokens)[-FIRST_TOKENS_KEPT:],
        answering=(*others, *mine),
    )


def _latest(one: datetime | None, other: datetime | None) -> datetime | None:
    return max((at for at in (one, other) if at), default=None)
