"""What a gateway really has, for a fuzz run to ask about: ids and cursors of every kind, names, keys and digests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.integration.gateway import Gateway

ASK = """
query($id: ID!) {
  feed { cursor }
  fleets { id name }
  job(id: $id) {
    id name project attempts { id number } pods { id name } logSources { id key } labels { key value }
    capsule { id digest } events(first: 9) { edges { cursor node { id } } }
    logs(first: 9) { edges { cursor } }
  }
  jobs(first: 9) { edges { cursor node { id } } }
}
"""
MANY = 9


@dataclass(frozen=True)
class Known:
    """`by_type` says for a kind of the schema what texts of it there are; `texts` are all of them."""

    jobs: Sequence[str]
    ids: Sequence[str]
    cursors: Sequence[str]
    texts: Sequence[str]


def known_of(gateway: Gateway, jobs: Sequence[str]) -> Known:
    data: Mapping[str, Any] = gateway.ask(ASK, id=jobs[0])
    ids, cursors, texts = list(jobs), list[str](), list[str]()
    waiting: list[tuple[str, Any]] = list(data.items())
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, Mapping):
            waiting += value.items()
        elif isinstance(value, list):
            waiting += [(name, one) for one in value[:MANY]]
        elif isinstance(value, str):
            kept = ids if name == "id" else cursors if name == "cursor" else texts
            kept.append(value)
    return Known(jobs, _once(ids), _once(cursors), _once(texts))


def _once(texts: Sequence[str]) -> Sequence[str]:
    return list(dict.fromkeys(texts))
