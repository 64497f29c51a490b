"""Who still sends what is going is told; what goes names its replacement and is left for half a year."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from graphql import GraphQLSchema, build_schema, parse

from starforge.api.transport.deprecated import NOTICE, Deprecation, deprecations, extension, going, read_reason

SINCE, REMOVAL = date(2026, 1, 1), date(2026, 7, 1)
OLD = going(replacement="Query.jobs", since=SINCE, removal=REMOVAL)
SCHEMA = build_schema(
    f"""
    directive @tag(old: Int @deprecated(reason: "{OLD}"), new: Int) on FIELD
    interface Named {{ name: String title: String @deprecated(reason: "{OLD}") }}
    type Job implements Named {{ name: String title: String @deprecated(reason: "{OLD}") next: Job }}
    input Filter {{ old: Int @deprecated(reason: "{OLD}") kind: Kind inner: Filter }}
    enum Kind {{ NEW OLD @deprecated(reason: "{OLD}") }}
    type Query {{
      job(by: Int @deprecated(reason: "{OLD}"), id: ID): Job
      jobs(filter: Filter, kinds: [Kind!]): [Job!]!
      named: Named
    }}
    """
)


def used(document: str) -> list[str]:
    return [one.coordinate for one in deprecations(parse(document), SCHEMA)]


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ("{ job(id: 1) { name } }", []),
        ("{ job { title } }", ["Job.title"]),
        ("{ named { title } }", ["Named.title"]),
        ("{ a: job { title } b: job { t: title next { title } } }", ["Job.title"]),
        ("{ job(by: 1) { name } }", ["Query.job(by:)"]),
        ("{ jobs(kinds: [NEW, OLD]) { name } }", ["Kind.OLD"]),
        ("{ jobs(filter: {old: 1, kind: NEW}) { name } }", ["Filter.old"]),
        ("{ jobs(filter: {inner: {kind: OLD}}) { name } }", ["Kind.OLD"]),
        ("query($kind: Kind! = OLD) { jobs(kinds: [$kind]) { name } }", ["Kind.OLD"]),
        ("{ job { ...F } named { name } } fragment F on Job { next { title } }", ["Job.title"]),
        ("{ job @tag(old: 1, new: 2) { name } }", ["@tag(old:)"]),
        ("{ __schema { types { fields { isDeprecated } } } }", []),
    ],
)
def test_what_a_document_uses_is_found(document: str, expected: list[str]) -> None:
    assert used(document) == expected


def test_an_answer_tells_element_reason_and_day() -> None:
    found = deprecations(parse("{ job { title } }"), SCHEMA)
    assert extension(found) == {
        "deprecations": [{"element": "Job.title", "message": OLD, "removal": REMOVAL.isoformat()}]
    }
    assert extension([]) == {}
    assert Deprecation("Job.x", "No longer supported").told() == {"element": "Job.x", "message": "No longer supported"}


def test_half_a_year_is_the_least() -> None:
    with pytest.raises(ValueError, match="less than 180 days"):
        going(replacement="Job.name", since=SINCE, removal=SINCE + NOTICE - timedelta(days=1))


def test_a_reason_is_read_as_it_was_written() -> None:
    written = going(replacement="Job.name", since=SINCE, removal=REMOVAL, more="It says the same.")
    read = read_reason(written)
    assert read
    assert (read.replacement, read.since, read.removal) == ("Job.name", SINCE, REMOVAL)
    for wrong in ("No longer supported", written.replace("Use", "Try"), written.replace("2026-07-01", "2026-07-32")):
        assert read_reason(wrong) is None


def breaches(schema: GraphQLSchema) -> list[str]:
    """Deprecations that are not as the policy wants them."""
    return [
        coordinate
        for coordinate, part in parts(schema).items()
        if (reason := getattr(part, "deprecation_reason", None)) is not None and not is_proper(reason, schema)
    ]


def is_proper(reason: str, schema: GraphQLSchema) -> bool:
    said = read_reason(reason)
    if said is None or said.removal - said.since < NOTICE:
        return False
    replacement = parts(schema).get(said.replacement)
    return replacement is not None and getattr(replacement, "deprecation_reason", None) is None


def parts(schema: GraphQLSchema) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for directive in schema.directives:
        found |= {f"@{directive.name}({name}:)": argument for name, argument in directive.args.items()}
    for type_ in schema.type_map.values():
        for name, part in (getattr(type_, "fields", None) or getattr(type_, "values", None) or {}).items():
            found[f"{type_.name}.{name}"] = part
            arguments = getattr(part, "args", {}).items()
            found |= {f"{type_.name}.{name}({argument}:)": about for argument, about in arguments}
    return {coordinate: part for coordinate, part in found.items() if not coordinate.startswith(("__", "@deprecated"))}


def test_our_schema_keeps_the_policy() -> None:
    assert breaches(build_schema((Path(__file__).parents[3] / "schema.graphql").read_text())) == []


@pytest.mark.parametrize(
    "wrong",
    [
        "No longer supported",
        OLD.replace(REMOVAL.isoformat(), "2026-03-01"),
        OLD.replace("Query.jobs", "Query.none"),
        OLD.replace("Query.jobs", "Job.title"),
    ],
)
def test_a_deprecation_against_the_policy_is_found(wrong: str) -> None:
    old = f'old: Int @deprecated(reason: "{wrong}")'
    sdl = f"type Query {{ jobs: Int {old} }} type Job {{ title: Int @deprecated }}"
    assert "Query.old" in breaches(build_schema(sdl))


def test_a_deprecation_by_the_policy_passes() -> None:
    assert breaches(SCHEMA) == []
