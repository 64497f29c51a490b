"""One transaction: everything of `Changes` in an order in which each part finds what it needs, the feed last."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from sqlalchemy import Connection

from starforge.adapters.store import capsules, commands, feed, health, jobs, logs, metrics, nodes, pulses, timeline
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
    jobs_told = [partial(feed.job_row, write) for write in changes.jobs if write.aspects]
    told = [
        *jobs_told,
        *(partial(feed.entry_row, entry, owners=owners) for entry in changes.entries),
        *(partial(feed.log_row, write, owners=owners) for write in grown),
        *(partial(feed.health_row, write) for write in changes.health if write.told),
        *(partial(feed.nodes_row, write) for write in changes.nodes),
    ]
    if not told:
        return []
    first = feed.reserve(connection, len(told))
    rows = [row(position=position, at=at) for position, row in enumerate(told, first)]
    timeline.write_entries(connection, list(enumerate(changes.entries, first + len(jobs_told))), owners)
    for position, write_of in enumerate(changes.nodes, first + len(told) - len(changes.nodes)):
        nodes.write(connection, write_of, position)
    feed.write_rows(connection, rows)
    return rows
