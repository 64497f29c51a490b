"""The schema as clients see it: described to the last value, with no list without an end."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from graphql import (
    GraphQLNamedType,
    GraphQLSchema,
    build_schema,
    get_named_type,
    is_enum_type,
    is_input_object_type,
    is_interface_type,
    is_list_type,
    is_non_null_type,
    is_object_type,
)

from starforge.api.schema import print_schema
from starforge.api.transport.codes import ErrorCode

PRINTED = Path(__file__).parents[2] / "schema.graphql"
SCHEMA: GraphQLSchema = build_schema(print_schema())
BUILT_IN = {"Int", "Float", "String", "Boolean", "ID"}
TYPES: list[GraphQLNamedType] = [
    one for name, one in SCHEMA.type_map.items() if not name.startswith("__") and name not in BUILT_IN
]
BUILT_IN_DIRECTIVES = {"skip", "include", "deprecated", "specifiedBy", "oneOf"}
ONLY_FORWARD = {"Job.logSearch"}
OUTPUTS: list[Any] = [one for one in TYPES if is_object_type(one) or is_interface_type(one)]


def described() -> Iterator[tuple[str, str | None]]:
    for one in TYPES:
        yield one.name, one.description
        for name, value in (one.values if is_enum_type(one) else {}).items():
            yield f"{one.name}.{name}", value.description
        has_fields = is_object_type(one) or is_interface_type(one) or is_input_object_type(one)
        for name, field in (cast("Any", one).fields if has_fields else {}).items():
            yield f"{one.name}.{name}", field.description
            for argument, about in getattr(field, "args", {}).items():
                yield f"{one.name}.{name}({argument})", about.description


def described_directives() -> Iterator[tuple[str, str | None]]:
    for one in SCHEMA.directives:
        if one.name in BUILT_IN_DIRECTIVES:
            continue
        yield f"@{one.name}", one.description
        for name, argument in one.args.items():
            yield f"@{one.name}({name})", argument.description


def fields() -> Iterator[tuple[str, Any]]:
    for one in OUTPUTS:
        for name, field in one.fields.items():
            yield f"{one.name}.{name}", field


def test_everything_is_described_in_sentences() -> None:
    texts = dict(described())
    assert len(texts) > 500
    assert [name for name, text in texts.items() if not text or not text.endswith(".")] == []


def test_directives_are_described_too() -> None:
    texts = dict(described_directives())
    assert {"@cost(weight)", "@listSize(assumedSize)", "@needs(role)"} <= set(texts)
    assert [name for name, text in texts.items() if not text or not text.endswith(".")] == []


def test_the_printed_schema_is_this_one() -> None:
    assert PRINTED.read_text() == print_schema(), "run `make schema`"


def test_what_can_be_fetched_again_has_an_opaque_id() -> None:
    nodes = SCHEMA.get_implementations(SCHEMA.type_map["Node"]).objects  # type: ignore[arg-type]
    assert {one.name for one in nodes} >= {"Job", "Attempt", "Pod", "LogSource", "Capsule", "JobStateEvent"}
    for one in nodes:
        assert str(one.fields["id"].type) == "ID!"
        assert "paque id" in (one.fields["id"].description or "")


def test_connections_need_an_end() -> None:
    found = [(name, field) for name, field in fields() if get_named_type(field.type).name.endswith("Connection")]
    assert len(found) >= 5
    for name, field in found:
        ways = ("first",) if name in ONLY_FORWARD else ("first", "last")
        ends = ("after",) if name in ONLY_FORWARD else ("after", "before")
        assert {*ways, *ends} <= set(field.args), name
        assert all(str(field.args[one].type) == "Int" for one in ways), name


def test_connections_follow_relay() -> None:
    for one in OUTPUTS:
        if one.name.endswith("Connection"):
            node = str(one.fields["nodes"].type)
            assert str(one.fields["pageInfo"].type) == "PageInfo!"
            edge = get_named_type(one.fields["edges"].type)
            assert str(edge.fields["cursor"].type) == "String!"
            assert f"[{edge.fields['node'].type}]!" == node


def test_lists_hold_no_null_except_columns_and_nodes() -> None:
    may = {"Query.nodes", "MetricSeries.values", "MetricSeries.minimums", "MetricSeries.maximums"}
    for name, field in fields():
        inner = field.type.of_type if is_non_null_type(field.type) else field.type
        if is_list_type(inner) and name not in may:
            assert is_non_null_type(inner.of_type), name


def test_every_step_of_a_subscription_is_a_change() -> None:
    assert SCHEMA.subscription_type is not None
    for name, field in SCHEMA.subscription_type.fields.items():
        step: Any = get_named_type(field.type)
        assert "Change" in {one.name for one in step.interfaces}, name
        assert str(field.args["after"].type) == "String", name


def test_every_mutation_says_what_its_caller_can_put_right() -> None:
    assert SCHEMA.mutation_type is not None
    for name, field in SCHEMA.mutation_type.fields.items():
        payload: Any = get_named_type(field.type)
        assert "MutationPayload" in {one.name for one in payload.interfaces}, name
        assert str(payload.fields["userErrors"].type) == "[UserError!]!"


@pytest.mark.parametrize(("unit", "type_"), [("Seconds", "Int"), ("At", "DateTime"), ("Bytes", "BigInt")])
def test_units_are_in_names(unit: str, type_: str) -> None:
    may = {"retentionSeconds", "seconds", "observerLagSeconds"}
    for name, field in fields():
        last = name.partition(".")[2]
        if last.endswith(unit) and last not in may:
            assert get_named_type(field.type).name == type_, name


def test_codes_of_errors_are_those_of_the_transport() -> None:
    assert {"CURSOR_EXPIRED", "CURSOR_INVALID", "SLOW_CONSUMER", "SNAPSHOT_TOO_LARGE"} <= set(ErrorCode)
