"""Waits until every job of a batch has ended, over one subscription however many there are."""

from collections.abc import AsyncGenerator, Callable, Collection, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from starforge.cli.answers import Json
from starforge.cli.batch.file import BATCH_LABEL
from starforge.cli.batch.persistence import Persistence
from starforge.cli.documents import BATCH_JOBS, FOLLOW_BATCH
from starforge.cli.gateway import Gateway
from starforge.cli.live import Live
from starforge.domain.errors import UserMistake

PAGE = 100


@dataclass
class _Watched:
    """The jobs that are waited for, as they are by now."""

    jobs: Collection[str]
    told: Callable[[Json], None]
    now: dict[str, Json] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    @property
    def is_over(self) -> bool:
        return len(self.ended) == len(self.jobs)

    def hear(self, job: Json) -> None:
        known = self.now.get(job["id"])
        if job["id"] not in self.jobs or (known and known["revision"] >= job["revision"]):
            return
        self.now[job["id"]] = job
        (self.ended.add if job["ended"] else self.ended.discard)(job["id"])
        self.told(job)


async def follow_batch(
    gateway: Gateway, identity: str, jobs: Collection[str], told: Callable[[Json], None], note: Callable[[str], None]
) -> Mapping[str, Json]:
    """Each job as it ended; `told` gets the versions of each on the way, rising, the newest at the end."""
    which = {"labels": [{"key": BATCH_LABEL, "values": [identity]}]}
    watched = _Watched(frozenset(jobs), told)
    while not watched.is_over:
        cursor = _read_pages(gateway, which, watched, Persistence(note))
        if not watched.is_over:
            await _read_changes(Live(gateway, note), {"filter": which, "after": cursor}, watched)
    return watched.now


def _read_pages(gateway: Gateway, which: Json, watched: _Watched, persistence: Persistence) -> str:
    """Takes in every job as it is; returns the cursor of the feed before that."""
    cursors = []
    for page in _pages(gateway, which, persistence):
        cursors.append(str(page["feed"]["cursor"]))
        for job in page["jobs"]["nodes"]:
            watched.hear(job)
    return cursors[0]


def _pages(gateway: Gateway, which: Json, persistence: Persistence) -> Iterator[Json]:
    given: Json = {"filter": which, "first": PAGE, "after": None}
    while True:
        page = persistence.ask(lambda: gateway.ask(BATCH_JOBS, **given))
        yield page
        info = page["jobs"]["pageInfo"]
        if not info["hasNextPage"]:
            return
        given["after"] = info["endCursor"]


async def _read_changes(live: Live, variables: Json, watched: _Watched) -> None:
    """Takes in changes until all is over, or until the pages have to be read again.

    That is when the feed forgot where we were and the jobs are too many for a snapshot.
    """
    heard = False
    try:
        async with aclosing(_changes(live, variables)) as changes:
            async for change in changes:
                heard = True
                if change["job"]:
                    watched.hear(change["job"])
                if watched.is_over:
                    return
    except UserMistake:
        if not heard:
            raise


async def _changes(live: Live, variables: Json) -> AsyncGenerator[Json, None]:
    async for change in live.follow(FOLLOW_BATCH, variables, is_last=lambda _: False):
        yield change
