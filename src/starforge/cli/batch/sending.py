"""Sends the jobs of a batch in chunks; what an earlier run that was cut has made is found by its keys."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from starforge.cli.answers import Json
from starforge.cli.batch.keys import Planned
from starforge.cli.batch.persistence import Persistence
from starforge.cli.documents import FIND_SUBMISSIONS, SUBMIT_JOBS
from starforge.cli.gateway import Gateway
from starforge.domain.errors import Defect, Problem, UserMistake

CHUNK_MAX = 100


@dataclass(frozen=True)
class Sent:
    """What became of one job: CREATED, REPLAYED (it was there already) or REFUSED."""

    planned: Planned
    status: str
    job: str | None
    errors: Sequence[Json] = field(default_factory=tuple)


def send(
    gateway: Gateway,
    plan: Sequence[Planned],
    persistence: Persistence,
    told: Callable[[int], None],
    *,
    chunk: int = CHUNK_MAX,
) -> list[Sent]:
    """What became of each, in order; `told` is called with how many are done after each `chunk` of them."""
    done: list[Sent] = []
    for start in range(0, len(plan), chunk):
        done += _chunk(gateway, plan[start : start + chunk], persistence)
        told(len(done))
    return done


def _chunk(gateway: Gateway, plan: Sequence[Planned], persistence: Persistence) -> Iterator[Sent]:
    found = _found(gateway, plan, persistence)
    missing = [one for one in plan if one.key not in found]
    made = {sent.planned.key: sent for sent in _submitted(gateway, missing, persistence)} if missing else {}
    for one in plan:
        yield made.get(one.key) or Sent(one, "REPLAYED", found[one.key])


def _found(gateway: Gateway, plan: Sequence[Planned], persistence: Persistence) -> dict[str, str]:
    """Ids by key of the jobs that are there already: a key is its own per project, so others' are none of them."""
    named = {one.project for one in plan}
    asked = {"keys": [one.key for one in plan], "projects": None if None in named else sorted(filter(None, named))}
    told = persistence.ask(lambda: gateway.ask(FIND_SUBMISSIONS, **asked))
    there = {(job["project"], job["idempotencyKey"]): job["id"] for job in told["jobs"]["nodes"]}
    places = {one.key: (one.project or told["viewer"]["project"], one.key) for one in plan}
    return {key: there[place] for key, place in places.items() if place in there}


def _submitted(gateway: Gateway, plan: Sequence[Planned], persistence: Persistence) -> Iterator[Sent]:
    items = [one.given for one in plan]
    answer = persistence.ask(lambda: gateway.ask(SUBMIT_JOBS, items=items))["submitJobs"]
    if answer["userErrors"]:
        raise UserMistake([Problem(one["code"], (), one["message"]) for one in answer["userErrors"]])
    if len(answer["outcomes"]) != len(plan):
        raise Defect(f"The gateway told of {len(answer['outcomes'])} jobs, and {len(plan)} were sent.")
    for one, outcome in zip(plan, answer["outcomes"], strict=True):
        job = outcome["job"]["id"] if outcome["job"] else None
        yield Sent(one, outcome["status"], job, outcome["userErrors"])
