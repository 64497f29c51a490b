"""Relay's paging arguments, checked, and pages of rows."""

from collections.abc import Sequence
from dataclasses import dataclass

from graphql import GraphQLError

from starforge.api.cursors import read_row_cursor, row_cursor
from starforge.api.values import PageInfo
from starforge.domain.queries import Key, Page, Row, Window

ROWS_MAX = 100


def bad_input(message: str) -> GraphQLError:
    """An argument with a value that its field does not allow."""
    return GraphQLError(message, extensions={"code": "BAD_USER_INPUT"})


@dataclass(frozen=True)
class PageArgs:
    """`first` or `last` is required, exactly one of them."""

    first: int | None
    after: str | None
    last: int | None
    before: str | None

    def limit(self, most: int) -> int:
        """How many rows are asked for; a GraphQL error if that is not 1 to `most`."""
        if (self.first is None) == (self.last is None):
            raise bad_input("Give exactly one of `first` and `last`.")
        wanted = self.first if self.first is not None else self.last
        if wanted is None or not 1 <= wanted <= most:
            raise bad_input(f"`first` or `last` must be 1 to {most}, not {wanted}.")
        return wanted

    def window(self) -> Window:
        return Window(
            self.limit(ROWS_MAX), read_row_cursor(self.after), read_row_cursor(self.before), self.last is not None
        )


def page_info(page: Page[Row]) -> PageInfo:
    keys: Sequence[Key] = [key for key, _ in page.rows]
    return PageInfo(
        has_next_page=page.has_next,
        has_previous_page=page.has_previous,
        start_cursor=row_cursor(keys[0]) if keys else None,
        end_cursor=row_cursor(keys[-1]) if keys else None,
    )
