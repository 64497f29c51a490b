"""What the command line knows of the API, compared with schema.graphql."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from graphql import (
    GraphQLEnumType,
    GraphQLInputObjectType,
    GraphQLList,
    GraphQLNonNull,
    build_schema,
    parse,
    validate,
)

from starforge.api.transport.limits import TransportLimits
from starforge.cli.client_verbs import State
from starforge.cli.documents import ALL
from starforge.cli.shapes import JOB_SPEC, Fields, ListOf, Number, Shape, Text

SCHEMA = build_schema((Path(__file__).parents[3] / "schema.graphql").read_text())
SCALARS: Mapping[str, type[Shape]] = {"String": Text, "Int": Number}


@pytest.mark.parametrize("name", ALL)
def test_every_document_is_valid_and_within_the_gateways_limits(name: str) -> None:
    document = parse(ALL[name], max_tokens=TransportLimits().document_tokens)
    assert validate(SCHEMA, document) == []


def test_all_documents_are_checked() -> None:
    assert set(ALL) == {
        "PREPARE_CODE", "SUBMIT_JOB", "CANCEL_JOB", "JOBS", "JOB", "LOGS", "FOLLOW_JOB", "FOLLOW_LOGS",
        "RETRY_JOB", "CANCEL_JOBS", "SUBMIT_JOBS", "FIND_SUBMISSIONS", "BATCH_JOBS", "FOLLOW_BATCH", "HEALTH",
        "CAPACITY", "FOLLOW_CAPACITY", "FITS",
    }  # fmt: skip


def test_states_are_those_of_the_api() -> None:
    kind = SCHEMA.type_map["JobState"]
    assert isinstance(kind, GraphQLEnumType)
    assert list(kind.values) == [state.value for state in State]


def test_keys_of_the_file_are_those_of_the_api() -> None:
    differences = list(compare("JobSpecInput", SCHEMA.type_map["JobSpecInput"], JOB_SPEC))
    assert differences == []


def test_a_difference_would_be_found() -> None:
    without = Fields({"name": Number()}, {})
    differences = list(compare("LabelInput", SCHEMA.type_map["LabelInput"], without))
    assert len(differences) == 1


def compare(path: str, kind: object, shape: Shape) -> list[str]:
    """Where a shape is not that of a type of the schema."""
    kind = kind.of_type if isinstance(kind, GraphQLNonNull) else kind
    if isinstance(kind, GraphQLList):
        return compare(f"{path}[]", kind.of_type, shape.item) if isinstance(shape, ListOf) else [path]
    if not isinstance(kind, GraphQLInputObjectType):
        return [] if isinstance(shape, SCALARS[str(kind)]) else [path]
    if not isinstance(shape, Fields):
        return [path]
    required = {name for name, field in kind.fields.items() if isinstance(field.type, GraphQLNonNull)}
    if set(shape.all) != set(kind.fields) or set(shape.required) != required:
        return [f"{path}: {sorted(shape.all)} is not {sorted(kind.fields)}"]
    fields = kind.fields.items()
    return [found for name, field in fields for found in compare(f"{path}.{name}", field.type, shape.all[name])]
