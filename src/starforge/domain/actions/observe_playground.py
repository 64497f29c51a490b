"""Takes in what a fleet tells of one playground: its Pod, events, log lines, and what follows from them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from starforge.domain.actions.playgrounds import command
from starforge.domain.changes import Changes, LogWrite
from starforge.domain.logs import LogSource
from starforge.domain.news import News, Reading, changed_pods, kubernetes_entry, pod_entries
from starforge.domain.observation import PodView
from starforge.domain.playground import Playground
from starforge.domain.playground_telling import write_playground
from starforge.domain.playground_verdict import judge_playground, wait, waits_for
from starforge.domain.ports import Ports
from starforge.domain.settled import SEEN_EVERY
from starforge.domain.timeline import CommandKind


@dataclass(frozen=True)
class Known:
    """What is stored of a playground besides itself."""

    pods: Sequence[PodView]
    sources: Sequence[LogSource]


def take_in(
    ports: Ports,
    changes: Changes,
    news: News,
    before: Playground,
    known: Known,
) -> Playground:
    """Adds what the news of a playground means to the changes; it as it is after them."""
    at, pods, sources = ports.now(), known.pods, known.sources
    opened = before.logs_archived_at is None and _logs(changes, news, sources, at)
    changes.extend(kubernetes_entry(event) for event in news.events)
    after = _judged(before, news, pods, at)
    moved = _pods(ports, changes, news, pods, at)
    if opened or moved or _is_news(before, after):
        write_playground(changes, before, after, at, ports.random, also=opened or moved)
    if after.ended and not before.ended:
        changes.commands.append(command(ports, CommandKind.STOP_PLAYGROUND, after))
    return after


def _logs(changes: Changes, news: News, sources: Sequence[LogSource], at: datetime) -> bool:
    """Append the lines; whether a log began, ended or was cut off. What looks like a runner's word is only a line."""
    states = {source.key: source.state for source in sources}
    reading = Reading({source.key: source for source in sources}, trusts=lambda nonce: False)
    reading.read(news.logs, at)
    for key in sorted(reading.touched):
        changes.logs.append(LogWrite(reading.sources[key], tuple(reading.lines.get(key, ()))))
    return any(reading.sources[key].state is not states.get(key) for key in reading.touched)


def _pods(ports: Ports, changes: Changes, news: News, known: Sequence[PodView], at: datetime) -> bool:
    pairs = changed_pods(known, news.newest) if news.newest else []
    changes.pods += [(news.run, pod) for _, pod in pairs]
    changes.extend(pod_entries(news.run, pairs, at, ports.random))
    return bool(pairs)


def _judged(playground: Playground, news: News, known: Sequence[PodView], at: datetime) -> Playground:
    """The playground after every picture in turn, so that no state is missed that came and went within a batch."""
    for seen in news.pictures[:-1]:
        playground, known = judge_playground(playground, seen, None, at, known), (*known, *seen.pods)
    held = waits_for(playground, news.newest, known, news.events, at)
    if news.newest:
        return judge_playground(playground, news.newest, held, at, known)
    return wait(playground, held, at) if news.events else playground


def _is_news(before: Playground, after: Playground) -> bool:
    """Whether it is worth a write: more than that it was seen again, or that after a while."""
    if replace(before, observed_at=after.observed_at) != after:
        return True
    old, new = before.observed_at, after.observed_at
    return new is not None and (old is None or new - old >= SEEN_EVERY / 2)
