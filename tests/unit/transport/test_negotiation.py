import pytest

from starforge.api.transport.negotiation import MediaType, negotiate, prefers_page

GRAPHQL, JSON = MediaType.GRAPHQL, MediaType.JSON


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, JSON),
        ("", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        ("application/json", JSON),
        ("Application/JSON; charset=utf-8", JSON),
        ("application/graphql-response+json", GRAPHQL),
        ("application/json, application/graphql-response+json", GRAPHQL),
        ("application/graphql-response+json;q=0.5, application/json", JSON),
        ("application/graphql-response+json, application/json;q=0.9", GRAPHQL),
        ("application/json;q=0, */*", GRAPHQL),
        ("application/json;q=nonsense", None),
        ("application/json;q=0", None),
        ("image/png", None),
        ("text/html", None),
    ],
)
def test_negotiate(accept: str | None, chosen: MediaType | None) -> None:
    assert negotiate(accept) is chosen


@pytest.mark.parametrize(
    ("accept", "is_page"),
    [
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", True),
        ("text/html;q=0.5, application/json", False),
        ("*/*", False),
        (None, False),
        ("application/json", False),
    ],
)
def test_prefers_page(accept: str | None, is_page: bool) -> None:
    assert prefers_page(accept) is is_page
