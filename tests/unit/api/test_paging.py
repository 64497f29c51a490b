"""Relay's arguments, and the page they ask for."""

import pytest
from graphql import GraphQLError

from starforge.api.cursors import line_cursor, read_row_cursor, row_cursor
from starforge.api.logs.pages import _range
from starforge.api.paging import PageArgs, page_info
from starforge.domain.errors import CursorInvalid
from starforge.domain.queries import Page, Window


@pytest.mark.parametrize(
    ("args", "window"),
    [
        (PageArgs(1, None, None, None), Window(1)),
        (PageArgs(100, row_cursor(("a", 1)), None, None), Window(100, after=("a", 1))),
        (PageArgs(None, None, 5, row_cursor((None, "x"))), Window(5, before=(None, "x"), backward=True)),
    ],
)
def test_what_is_asked_for(args: PageArgs, window: Window) -> None:
    assert args.window() == window


@pytest.mark.parametrize(
    "args",
    [
        PageArgs(None, None, None, None),
        PageArgs(1, None, 1, None),
        PageArgs(0, None, None, None),
        PageArgs(-1, None, None, None),
        PageArgs(101, None, None, None),
        PageArgs(None, None, 101, None),
    ],
)
def test_what_is_not_allowed(args: PageArgs) -> None:
    with pytest.raises(GraphQLError, match="first"):
        args.window()


def test_a_cursor_of_something_else_is_refused() -> None:
    with pytest.raises(CursorInvalid):
        PageArgs(1, line_cursor("log", 1), None, None).window()


def test_where_a_page_lies() -> None:
    info = page_info(Page([(("a", 1), "first"), (("b", 2), "second")], has_next=True, has_previous=False))
    assert (info.has_next_page, info.has_previous_page) == (True, False)
    assert (read_row_cursor(info.start_cursor), read_row_cursor(info.end_cursor)) == (("a", 1), ("b", 2))


def test_an_empty_page_has_no_cursors() -> None:
    info = page_info(Page([], has_next=False, has_previous=False))
    assert (info.start_cursor, info.end_cursor) == (None, None)


@pytest.mark.parametrize(
    ("limit", "after", "last", "backward", "lines"),
    [
        (10, 0, 100, False, (1, 10)),
        (10, 95, 100, False, (96, 100)),
        (10, 100, 100, False, (101, 100)),
        (10, 0, 100, True, (91, 100)),
        (10, 95, 100, True, (96, 100)),
        (10, 0, 0, True, (1, 0)),
    ],
)
def test_lines_of_a_page(limit: int, after: int, last: int, backward: bool, lines: tuple[int, int]) -> None:
    assert _range(limit, after, last, backward) == lines
