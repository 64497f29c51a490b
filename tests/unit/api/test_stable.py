"""Every field says whether the feed tells of all that it shows, and a document is as stable as its fields."""

from collections import Counter

import pytest
from graphql import parse, validate

from starforge.api.schema import make_schema
from starforge.api.stable import STABLE_FIELDS, UNSTABLE_FIELDS, UNSTABLE_TYPES, is_stable, object_types

SCHEMA = make_schema()._schema


def test_every_field_has_decided_once() -> None:
    fields = [
        f"{kind.name}.{name}"
        for kind in object_types(SCHEMA)
        if kind.name not in UNSTABLE_TYPES
        for name in kind.fields
    ]
    marks = Counter([*STABLE_FIELDS, *UNSTABLE_FIELDS])
    assert {field: marks[field] for field in fields if marks[field] != 1} == {}
    assert set(marks) - set(fields) == set(), "marks of fields that are not there"
    assert UNSTABLE_TYPES - {kind.name for kind in object_types(SCHEMA)} == set(), "types that are not there"


def stable(text: str, operation: str | None = None) -> bool:
    document = parse(text)
    assert validate(SCHEMA, document) == []
    first = is_stable(SCHEMA, document, operation)
    assert is_stable(SCHEMA, document, operation) is first
    return first


@pytest.mark.parametrize(
    "text",
    [
        "{ feed { cursor retentionSeconds } jobs(first: 50) { __typename nodes { id revision state } totalCount } }",
        "{ job(id: \"x\") { ...F } } fragment F on Job { reason { code } pools { podCounts { ready } } }",
        "{ node(id: \"x\") { id ... on Job { state } ... on Pod { phase } } }",
        "{ events(first: 1) { nodes { message workload { id name } ... on ClockEvent { clock { dueAt } } } } }",
        "{ jobCounts(by: STATE) { value count } }",
    ],
)  # fmt: skip
def test_documents_of_rows_are_stable(text: str) -> None:
    assert stable(text)


@pytest.mark.parametrize(
    "text",
    [
        "{ feed { cursor at } }",
        "{ viewer { name } }",
        "{ job(id: \"x\") { observation { observedAt } } }",
        "{ job(id: \"x\") { logs(first: 1) { totalCount } } }",
        "{ node(id: \"x\") { ... on Job { rayJobName } } }",
        "{ node(id: \"x\") { ... on Workload { observedAt } } }",
        "{ job(id: \"x\") { ...F } } fragment F on Job { ...G } fragment G on Job { capsule { download { url } } }",
        "query($a: Boolean!) { job(id: \"x\") { id observedAt @include(if: $a) } }",
        "{ __schema { types { name } } }",
        "mutation { cancelJob(id: \"x\") { status } }",
        "subscription { events { cursor } }",
    ],
)  # fmt: skip
def test_a_document_with_anything_else_is_not(text: str) -> None:
    assert not stable(text)


def test_each_operation_of_a_document_is_judged_alone() -> None:
    text = "query A { jobs(first: 1) { nodes { id } } } query B { feed { at } }"
    assert stable(text, "A")
    assert not stable(text, "B")
    assert not stable(text)
    assert not stable(text, "C")


def test_a_diamond_of_fragments_is_looked_at_once_each() -> None:
    layers = [
        f"fragment F{n} on Job {{ a: attempts {{ job {{ ...F{n + 1} }} }} b: attempts {{ job {{ ...F{n + 1} }} }} }}"
        for n in range(60)
    ]
    document = parse(" ".join(["{ job(id: 1) { ...F0 } }", *layers, "fragment F60 on Job { id }"]))
    assert is_stable(SCHEMA, document)
