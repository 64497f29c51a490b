"""The documentation is true: it has the metrics and close codes of the code, and its links lead somewhere."""

import re
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import strawberry
from prometheus_client.core import Metric

from starforge.api.feed.hub import Hub
from starforge.api.metrics import GatewayMetrics
from starforge.api.transport.app import graphql
from starforge.api.transport.callers import Callers, Credentials
from starforge.api.transport.messages import CloseCode
from starforge.api.transport.schema import GatewaySchema
from starforge.domain.health import CommandQueue
from starforge.domain.queries import FeedRow

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")] if "node_modules" not in page.parts
)
OPERATIONS = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


class EmptyTable:
    async def bounds(self) -> tuple[int, int]:
        return 0, 0

    async def rows(self, after: int, limit: int) -> Sequence[FeedRow]:
        return ()


async def silence() -> AsyncIterator[Sequence[FeedRow] | None]:
    yield None


async def nobody(credentials: Credentials) -> str:
    return "nobody"


@strawberry.type
class Query:
    one: int = 1


def metrics() -> list[Metric]:
    callers = Callers[str](authenticate=nobody)
    desk = graphql(GatewaySchema(Query), callers, make_context=lambda incoming: None).desk
    return list(GatewayMetrics(Hub(EmptyTable(), silence), desk, CommandQueue).collect())


def row(metric: Metric) -> str:
    labels = "".join(f" by `{name}`" for name in sorted({key for sample in metric.samples for key in sample.labels}))
    name = f"{metric.name}_total" if metric.type == "counter" else metric.name
    return f"| `{name}` | {metric.type}{'' if metric.type == 'histogram' else labels} | {metric.documentation} |"


def between(mark: str) -> str:
    return OPERATIONS.partition(f"<!-- {mark} -->\n")[2].partition(f"\n<!-- end of {mark} -->")[0]


def test_the_documentation_has_the_metrics_of_the_code() -> None:
    table = "\n".join(["| metric | kind | what it says |", "|---|---|---|", *map(row, metrics())])
    assert between("metrics") == table, f"Put this between the marks in docs/operations.md:\n{table}"


def test_metrics_that_are_to_be_looked_at_are_there() -> None:
    named = {f"{one.name}_total" if one.type == "counter" else one.name for one in metrics()}
    assert set(re.findall(r"`(starforge_\w+)`", OPERATIONS)) <= named


def test_the_documentation_has_every_close_code() -> None:
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", between("close codes"), re.MULTILINE)] == sorted(
        CloseCode
    )


def anchors(page: Path) -> set[str]:
    """Of its headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", head)).lower().replace(" ", "-")
        for head in heads
    }


def broken(page: Path) -> list[str]:
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        to = (page.parent / name).resolve() if name else page
        if not to.exists() or (anchor and to.suffix == ".md" and anchor not in anchors(to)):
            found.append(link)
    return found


def test_there_are_pages_with_links() -> None:
    assert {"README.md", "architecture.md", "dashboard.md"} <= {page.name for page in PAGES}
    assert "how-a-gateway-ends" in anchors(ROOT / "docs" / "operations.md")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_every_decision_is_numbered_once_and_says_its_number() -> None:
    decisions = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert [int(page.name[:4]) for page in decisions] == list(range(1, len(decisions) + 1))
    for page in decisions:
        assert page.read_text(encoding="utf-8").startswith(f"# {int(page.name[:4])}. "), page.name
