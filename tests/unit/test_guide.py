"""The guides are true: their documents fit the schema, and their links lead somewhere."""

import re
from pathlib import Path

import pytest
from graphql import build_schema, parse, validate

ROOT = Path(__file__).parents[2]
GUIDES = sorted((ROOT / "docs" / "guide").glob("*.md"))
SCHEMA = build_schema((ROOT / "schema.graphql").read_text())
DASHBOARD = (ROOT / "docs" / "guide" / "dashboard" / "dashboard.js").read_text()


def documents_of_the_dashboard() -> dict[str, str]:
    """Its template strings that are GraphQL, with the fragments put in."""
    texts = dict(re.findall(r"^const ([A-Z_]+) = `\n([^`]+)`;", DASHBOARD, re.MULTILINE))
    return {
        name: re.sub(r"\$\{([A-Z_]+)\}", lambda match: texts[match[1]], text)
        for name, text in texts.items()
        if not text.lstrip().startswith("fragment")
    }


def test_the_dashboard_has_a_query_and_a_subscription_for_each_part() -> None:
    assert {"JOBS_TABLE", "LIVE_JOBS_TABLE", "JOB_PAGE", "LIVE_JOB_PAGE", "LIVE_LOG"} <= set(
        documents_of_the_dashboard()
    )


@pytest.mark.parametrize("name", documents_of_the_dashboard())
def test_a_document_of_the_dashboard_fits_the_schema(name: str) -> None:
    assert validate(SCHEMA, parse(documents_of_the_dashboard()[name])) == []


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.name)
def test_documents_of_a_guide_fit_the_schema(guide: Path) -> None:
    for document in re.findall(r"```graphql\n(.*?)```", guide.read_text(), re.DOTALL):
        assert validate(SCHEMA, parse(document)) == [], document


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.name)
def test_links_of_a_guide_lead_to_files(guide: Path) -> None:
    links = re.findall(r"\]\((?!http)([^)#]+)", guide.read_text())
    assert links
    assert [link for link in links if not (guide.parent / link).exists()] == []
