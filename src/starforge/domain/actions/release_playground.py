"""Removes what a playground had in the cluster, proves it gone, and keeps its logs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from starforge.domain.actions.apply import apply
from starforge.domain.actions.log_objects import keep, manifest_key, manifest_of, store
from starforge.domain.actions.playgrounds import guarded_playground, leased
from starforge.domain.changes import Changes, Lease, LogWrite, Retry
from starforge.domain.errors import FleetRefused
from starforge.domain.job import LogArchive
from starforge.domain.log_waits import DRIVER_PATIENCE, left_open
from starforge.domain.logs import LogSource, LogState, checksum
from starforge.domain.news import Reading, changed_pods, pod_entries
from starforge.domain.observation import RunPhase, RunSeen
from starforge.domain.playground import Playground
from starforge.domain.playground_telling import write_playground
from starforge.domain.ports import Ports
from starforge.domain.reason import Reason, ReasonCode, reason
from starforge.domain.teardown import RemainingObject, looked, pause
from starforge.domain.timeline import Entry, LogChanged, Severity

_LOOK = timedelta(seconds=1)
_GONE = "The Pod was gone before its log was read to its end."


@dataclass(frozen=True)
class _Look:
    """What is left, or why the fleet will not remove it or say so."""

    remaining: Sequence[RemainingObject] = ()
    refused: Reason | None = None


def release_playground(ports: Ports, lease: Lease) -> None:
    """STOP_PLAYGROUND: delete, look what is left and come again until nothing is; then store and verify the logs.

    What came after that is removed too: a launch that hung may have made it.
    """
    playground = leased(ports, lease.command.run)
    if not playground.ended:
        return apply(ports, Changes(done=True), lease)
    look = _remove(ports, playground)
    if playground.released_at is None:
        playground = guarded_playground(ports, playground.id, lambda found: _noted(ports, found, look))
    if playground.released_at is None or look.remaining:
        wait = pause(playground.teardown, ports.now()) if playground.teardown else _LOOK
        return apply(ports, Changes(retry=Retry(ports.now() + wait)), lease)
    if playground.logs_archived_at is None and not _archived(ports, playground):
        return apply(ports, Changes(retry=Retry(ports.now() + _LOOK)), lease)
    apply(ports, Changes(done=True), lease)


def _remove(ports: Ports, playground: Playground) -> _Look:
    """Also where it was never launched that we know of: the try that was cut may have come through."""
    try:
        ports.fleet.delete(playground.key)
        return _Look(ports.fleet.remaining(playground.key))
    except FleetRefused as refused:
        known = playground.teardown
        return _Look(known.remaining if known else (), refused.reason)


def _noted(ports: Ports, found: Playground, look: _Look) -> Changes | None:
    if found.teardown is None or found.released_at:
        return None
    at, changes = ports.now(), Changes()
    removal = looked(found.teardown, look.remaining, at, refused=look.refused)
    if removal.released_at:
        _pods_gone(ports, found, changes)
    after = replace(found, teardown=removal, released_at=removal.released_at)
    write_playground(changes, found, after, at, ports.random)
    return changes


def _pods_gone(ports: Ports, playground: Playground, changes: Changes) -> None:
    """Nothing is left, so no Pod is, whether the watch tells it or not."""
    run, at = playground.key, ports.now()
    pairs = changed_pods(ports.store.pods([run]).get(run, ()), RunSeen(run, RunPhase.ABSENT, at))
    changes.pods += [(run, pod) for _, pod in pairs]
    changes.extend(pod_entries(run, pairs, at, ports.random))


def _archived(ports: Ports, playground: Playground) -> bool:
    """Close and keep every log; False while the end of one may still be read."""
    run = playground.key
    if _ends_come(ports, playground):
        return False
    guarded_playground(ports, playground.id, lambda _: _closed(ports, playground))
    stored = [store(ports, source) for source in _sources(ports, playground)]
    manifest = manifest_of(run, stored)
    keep(ports, manifest_key(run), manifest)
    guarded_playground(ports, playground.id, lambda found: _kept(ports, found, stored, checksum([manifest])))
    return True


def _sources(ports: Ports, playground: Playground) -> Sequence[LogSource]:
    return ports.store.log_sources([playground.key]).get(playground.key, ())


def _ends_come(ports: Ports, playground: Playground) -> bool:
    pods = ports.store.pods([playground.key]).get(playground.key, ())
    gone = left_open(_sources(ports, playground), pods)
    return any(ports.now() < since + DRIVER_PATIENCE for since in gone.values())


def _closed(ports: Ports, playground: Playground) -> Changes:
    sources, at = _sources(ports, playground), ports.now()
    reading = Reading({source.key: source for source in sources}, trusts=lambda nonce: False)
    for source in sources:
        reading.close(source.key, at, missing=None if source.is_over else _GONE)
    return Changes(
        logs=[LogWrite(reading.sources[key], tuple(reading.lines.get(key, ()))) for key in sorted(reading.touched)]
    )


def _kept(ports: Ports, found: Playground, sources: Sequence[LogSource], sha256: str) -> Changes | None:
    if found.logs_archived_at:
        return None
    at, changes = ports.now(), Changes(logs=[LogWrite(source) for source in sources])
    lines, size = sum(source.lines for source in sources), sum(source.bytes for source in sources)
    cut = [source.key for source in sources if source.state is LogState.TRUNCATED]
    why = reason(ReasonCode.NODE_LOST, f"Lines are missing in {', '.join(cut)}.", at) if cut else None
    kept = LogArchive(len(sources), lines, size, sha256, at, why)
    message = f"{lines} lines of {len(sources)} logs are stored and verified."
    changes.entries.append(Entry(f"event-{ports.random()}", found.key, Severity.INFO, message, at, at, LogChanged()))
    write_playground(changes, found, replace(found, archive=kept, logs_archived_at=at), at, ports.random)
    return changes
