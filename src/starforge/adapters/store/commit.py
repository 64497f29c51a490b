"""One transaction: everything of `Changes` in an order in which each part finds what it needs, the feed last."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection

from starforge.adapters.store import capsules, commands, feed, health, jobs, logs, metrics, pulses, timeline
from starforge.adapters.store.owners import owners_of
from starforge.domain.changes import Changes, Lease
from starforge.domain.queries import FeedRow


def write(connection: Connection, changes: Changes, *, at: datetime, lease: Lease | None) -> Sequence[FeedRow]:
    """Write `changes` and return the rows of the feed."""
    pulses.check_watcher(connection, changes.watcher)
    commands.settle(connection, changes, lease, at=at)
    owners = owners_of(connection, changes)
    jobs.write_jobs(connection, changes.jobs)
    capsules.write_idempotency(connection, changes.idempotency)
    commands.ask(connection, changes.commands, at=at)
    jobs.write_pods(connection, changes.pods)
    metrics.write_metrics(connection, changes.metrics)
    capsules.write_code(connection, changes)
    health.write(connection, changes.health)
    grown = logs.write_logs(connection, changes.logs, at=at)
    told = [write for write in changes.jobs if write.aspects]
    judged = [write for write in changes.health if write.told]
    count = len(told) + len(changes.entries) + len(grown) + len(judged)
    if not count:
        return []
    first = feed.reserve(connection, count)
    first_entry = first + len(told)
    first_log = first_entry + len(changes.entries)
    first_health = first_log + len(grown)
    rows = [feed.job_row(write, position, at=at) for position, write in enumerate(told, first)]
    rows += [
        feed.entry_row(entry, position, owners, at=at) for position, entry in enumerate(changes.entries, first_entry)
    ]
    rows += [feed.log_row(write, position, owners, at=at) for position, write in enumerate(grown, first_log)]
    rows += [feed.health_row(write, position, at=at) for position, write in enumerate(judged, first_health)]
    timeline.write_entries(connection, list(enumerate(changes.entries, first_entry)), owners)
    feed.write_rows(connection, rows)
    return rows
