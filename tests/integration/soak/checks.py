"""What each subscriber was told, compared with a replay and with what queries answer, once all is quiet."""

from collections import Counter
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from starforge.api.cursors import read_feed_cursor
from tests.integration.soak.documents import EVENTS_NOW, JOB_NOW, JOBS_NOW, LOGS, LOGS_NOW
from tests.integration.soak.site import Site
from tests.integration.soak.subscriber import Subscriber
from tests.integration.soak.wires import Socket

Line = tuple[int, str]
Told = tuple[str, str]


async def _reads() -> None:
    """A reader that never stops."""


@dataclass
class Tally:
    """What was counted over all subscribers."""

    events: int = 0
    lines: int = 0
    states: int = 0
    removed: int = 0
    again: int = 0
    """Revisions that were told again, directly after a resume."""
    doubled: int = 0
    lost: int = 0
    wrong: list[str] = field(default_factory=list)


class Checks:
    def __init__(self, site: Site, head: str) -> None:
        self._site = site
        self._begin = head
        self._known: dict[str, Any] = {}
        self.tally = Tally()

    async def check(self, one: Subscriber) -> None:
        each = {"events": self._events, "jobLogs": self._logs, "job": self._job, "jobs": self._jobs}
        await each[one.asked.root](one)

    def _expect(self, holds: bool, one: Subscriber, what: str) -> None:
        if not holds:
            self.tally.wrong.append(f"{one.name}: {what}; ended by {dict(one.story.ends)}")

    # --- each thing once

    async def _events(self, one: Subscriber) -> None:
        told = [(step["cursor"], step["event"]["id"]) for _, step in one.story.steps if step["event"]]
        replay = await self._replay(one)
        self.tally.events += len(told)
        self._compare(one, told, replay)
        cursors = [read_feed_cursor(cursor) for cursor, _ in told]
        self._expect(cursors == sorted(set(cursors)), one, "cursors do not rise")
        if one.asked.after == self._begin:
            kept = await self._pages(EVENTS_NOW, "events", filter=one.asked.variables.get("filter"))
            unique = list(dict.fromkeys(id_ for _, id_ in told))
            self._expect(unique == [node["id"] for node in kept], one, "not the events that are kept")

    async def _replay(self, one: Subscriber) -> list[Told]:
        """What a subscriber is told who begins where this one did."""
        key = f"{one.asked} {one.story.first_cursor}"
        if key not in self._known:
            variables, steps = one.asked.resumed(one.story.first_cursor), []
            async with aclosing(self._socket().results(one.asked.query, variables)) as payloads:
                async for payload in payloads:
                    step = payload["data"]["events"]
                    if step["kind"] == "BOOKMARK":
                        break
                    steps.append((step["cursor"], step["event"]["id"]))
            self._known[key] = steps
        found: list[Told] = self._known[key]
        return found

    def _socket(self) -> Socket:
        return Socket(self._site.gateway.port, _reads)

    async def _logs(self, one: Subscriber) -> None:
        told = [_line(line) for _, step in one.story.steps for line in step["lines"] or ()]
        self.tally.lines += len(told)
        self._expect(one.is_done, one, "its log never ended")
        all_lines = await self._log(one.asked.variables["id"])
        first = told[0][0] if told else 1
        self._compare(one, told, [line for line in all_lines if line[0] >= first])
        self._expect("tail" in one.asked.variables or first == 1, one, f"began at line {first}")

    async def _log(self, job: str) -> list[Line]:
        """All lines, as a subscription replays them and pages hold them."""
        if job not in self._known:
            lines: list[Line] = []
            async with aclosing(self._socket().results(LOGS, {"id": job})) as payloads:
                async for payload in payloads:
                    lines += map(_line, payload["data"]["jobLogs"]["lines"] or ())
            pages = await self._pages(LOGS_NOW, "job", "logs", id=job)
            assert lines == list(map(_line, pages)), f"a replay of the log of {job} is not what is kept"
            assert [number for number, _ in lines] == list(range(1, len(lines) + 1))
            self._known[job] = lines
        found: list[Line] = self._known[job]
        return found

    def _compare(self, one: Subscriber, told: Sequence[Any], replay: Sequence[Any]) -> None:
        got, wanted = Counter(told), Counter(replay)
        doubled, lost = (got - wanted).total(), (wanted - got).total()
        self.tally.doubled += doubled
        self.tally.lost += lost
        what = f"{doubled} doubled and {lost} lost of {len(replay)}, or out of order"
        self._expect(list(told) == list(replay), one, what)

    # --- states

    async def _job(self, one: Subscriber) -> None:
        last = self._rising(one)
        job = one.asked.variables["id"]
        now = (await self._ask(JOB_NOW, id=job))["job"]
        self._expect(last == {job: now["revision"]}, one, f"ends with {last}, not {now}")

    async def _jobs(self, one: Subscriber) -> None:
        held = self._rising(one)
        nodes = await self._pages(JOBS_NOW, "jobs", filter=one.asked.variables["filter"])
        now = {node["id"]: node["revision"] for node in nodes}
        self._expect(held == now, one, f"holds {sorted(held.items() ^ now.items())} unlike a query")

    def _rising(self, one: Subscriber) -> dict[str, int]:
        """The jobs that the client holds at the end, with their revisions."""
        last, again, held = dict[str, int](), set[str](), dict[str, int]()
        for is_fresh, step in one.story.steps:
            if is_fresh:
                again = set(last)
                if step["kind"] == "SNAPSHOT":
                    held = {}
            if step["job"] is None:
                continue
            id_, revision = step["job"]["id"], step["job"]["revision"]
            before = last.get(id_, -1)
            self._expect(
                revision > before or (revision == before and id_ in again), one, f"{id_}: {revision} after {before}"
            )
            self.tally.again += revision == before
            self.tally.states += 1
            again.discard(id_)
            last[id_] = revision
            held[id_] = revision
            if step["kind"] == "REMOVED":
                self.tally.removed += 1
                del held[id_]
        return held

    # --- queries

    async def _ask(self, query: str, **variables: Any) -> Any:
        key = f"{query} {variables}"
        if key not in self._known:
            self._known[key] = await self._site.answer(query, **variables)
        return self._known[key]

    async def _pages(self, query: str, *path: str, **variables: Any) -> list[dict[str, Any]]:
        """All nodes of a connection."""
        nodes, after = list[dict[str, Any]](), None
        while True:
            page = await self._ask(query, **variables, after=after)
            for name in path:
                page = page[name]
            nodes += page["nodes"]
            if not page["pageInfo"]["hasNextPage"]:
                return nodes
            after = page["pageInfo"]["endCursor"]


def _line(line: dict[str, Any]) -> Line:
    return line["number"], line["text"]
