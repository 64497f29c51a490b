"""The pages of docs/reference tell of everything and link to what is there."""

import re
from pathlib import Path

from graphql import build_schema, is_introspection_type

from scripts.reference import pages
from starforge.api.transport.code_meanings import MEANINGS
from starforge.api.transport.codes import ErrorCode

SDL = (Path(__file__).parents[2] / "schema.graphql").read_text()
PAGES = pages(SDL)
SMALL = '''
"""Costs points."""
directive @cost("Points." weight: Int!) on FIELD_DEFINITION
"""All."""
type Query {
  """One | two
  lines."""
  jobs("How many." first: Int! = 5, "Which." ids: [[ID!]!]!): [Job!]! @cost(weight: 5)
  """Old."""
  job: Job @deprecated(reason: "Use `Query.jobs`.")
}
"""A job."""
type Job { "Its id." id: ID! "A choice." by: By }
"""A choice."""
input Choice @oneOf { "One." a: Int "Other." b: Int }
"""A union."""
union By = Job
'''


def anchors(page: str) -> set[str]:
    return {line[3:].strip().lower().replace("@", "") for line in page.splitlines() if line.startswith("## ")}


def test_every_link_leads_to_a_heading() -> None:
    links = [link for page in PAGES.values() for link in re.findall(r"\]\(([\w.]+\.md)(?:#([\w-]+))?\)", page)]
    assert len(links) > 500
    for name, anchor in links:
        assert name in PAGES
        assert not anchor or anchor in anchors(PAGES[name]), (name, anchor)


def test_every_type_and_operation_has_an_entry() -> None:
    schema = build_schema(SDL)
    found = set().union(*map(anchors, PAGES.values()))
    roots = [schema.query_type, schema.mutation_type, schema.subscription_type]
    names = {name for name, one in schema.type_map.items() if not is_introspection_type(one) and one not in roots}
    for root in roots:
        assert root
        names |= set(root.fields)
    assert {name.lower() for name in names} - found == set()


def test_every_code_is_told() -> None:
    assert set(MEANINGS) == set(ErrorCode)
    for code, meaning in MEANINGS.items():
        assert f"| `{code}` | {meaning.sentence} |" in PAGES["errors.md"]
        assert meaning.sentence.endswith(".")
        assert meaning.advice.endswith(".")


def test_a_field_is_told_with_its_arguments_cost_and_end() -> None:
    page = pages(SMALL)["queries.md"]
    assert "One | two lines. `@cost(weight: 5)`" in page
    assert r"Gives \[[Job](objects.md#job)!\]!." in page
    assert "| `first` | [Int](scalars.md#int)! | How many. By default `5`. |" in page
    assert r"| `ids` | \[\[[ID](scalars.md#id)!\]!\]! | Which. Required. |" in page
    assert "Old. **Deprecated:** Use `Query.jobs`." in page


def test_each_kind_that_there_is_has_a_page() -> None:
    small = pages(SMALL)
    assert "mutations.md" not in small
    assert "Comes as [Job](objects.md#job)." in small["unions.md"]
    assert "Exactly one of the fields has to be given." in small["inputs.md"]
    assert "## @cost" in small["directives.md"]
    assert "- [Unions](unions.md)" in small["README.md"]
