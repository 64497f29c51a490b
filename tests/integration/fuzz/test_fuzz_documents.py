"""Documents and variables of every kind over HTTP: each gets an answer that tells nothing of our insides."""

import http.client
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.integration.fuzz.documents import Asked, Documents
from tests.integration.fuzz.judge import (
    Complaints,
    Tally,
    budget,
    judge_payload,
    judge_status,
    judge_text,
    strictly,
)
from tests.integration.fuzz.known import Known
from tests.integration.gateway import PATIENCE_S, TOKEN, Gateway

HEADERS = {
    "authorization": f"Bearer {TOKEN}",
    "content-type": "application/json",
    "accept": "application/graphql-response+json",
}


@pytest.fixture
def line(gateway: tuple[Gateway, Known]) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection("127.0.0.1", gateway[0].port, timeout=PATIENCE_S)
    yield connection
    connection.close()


def ask(line: http.client.HTTPConnection, asked: Asked) -> Any:
    line.request("POST", "/graphql", asked.body(), HEADERS)
    response = line.getresponse()
    text = response.read().decode()
    line.close()  # the server ends one that is silent for as long as hypothesis may think
    judge_text(text)
    payload = strictly(text)
    judge_payload(payload)
    judge_status(response.status, payload)
    return payload


def run(
    strategy: st.SearchStrategy[Asked], examples: int, line: http.client.HTTPConnection, watched: Complaints
) -> Tally:
    tally = Tally()

    @budget(examples)
    @given(strategy)
    def each(asked: Asked) -> None:
        with watched.none(asked):
            tally.payload(ask(line, asked))

    each()
    tally.show()
    return tally


def test_queries(line: http.client.HTTPConnection, documents: Documents, watched: Complaints) -> None:
    tally = run(documents.strategy("query"), 300, line, watched)
    assert tally["answered"] > 30, "hardly anything was run"


def test_mutations(line: http.client.HTTPConnection, documents: Documents, watched: Complaints) -> None:
    tally = run(documents.strategy("mutation"), 200, line, watched)
    assert tally["answered"] > 10, "hardly anything was run"
