"""Search in a log: what matches and where, and how far one call goes."""

import re
from collections.abc import Callable, Sequence
from itertools import count

import pytest
from graphql import GraphQLError
from hypothesis import given
from hypothesis import strategies as st

from starforge.api.logs.search import LINES_MAX, QUERY_MAX, RANGES_MAX, TOGETHER, Found, Wanted, search, utf16
from starforge.domain.logs import LogLine

Read = Callable[[int, int], Sequence[LogLine]]


def log(*texts: str) -> Read:
    return lambda first, last: [LogLine(number, texts[number - 1]) for number in range(first, last + 1)]


def find(query: str, *texts: str, regex: bool = False, case_sensitive: bool = False, most: int = 100) -> Found:
    pattern = Wanted(query, regex, case_sensitive).pattern()
    return search(log(*texts), pattern, after=0, last=len(texts), most=most, clock=lambda: 0.0)


def test_a_text_is_found_wherever_it_stands_and_is_no_expression() -> None:
    found = find("a.b", "a.b and A.B", "axb", "")
    assert [(line.number, list(ranges)) for line, ranges in found.matches] == [(1, [(0, 3), (8, 11)])]
    assert found.searched_to == 3


def test_case_is_told_apart_only_if_asked_for() -> None:
    assert [line.number for line, _ in find("Loss", "loss", "LOSS", "Loss", case_sensitive=True).matches] == [3]
    assert len(find("Loss", "loss", "LOSS", "Loss").matches) == 3


def test_an_expression() -> None:
    found = find(r"loss=(\d+)\b", "loss=12 loss=3", "loss=x", regex=True)
    assert [list(ranges) for _, ranges in found.matches] == [[(0, 7), (8, 14)]]


def test_an_expression_that_matches_nothing_at_all_marks_nothing() -> None:
    found = find("x*", "abc", regex=True)
    assert [list(ranges) for _, ranges in found.matches] == [[]]


def test_ranges_are_bounded() -> None:
    (match,) = find("a", "a" * 1000).matches
    assert len(match[1]) == RANGES_MAX


@pytest.mark.parametrize("query", [r"(a*)*$", r"(a|a)*$", r"(.*a){12}$", r"^(([a-z])+.)+[A-Z]([a-z])+$"])
def test_no_expression_blows_up(query: str) -> None:
    assert find(query, "a" * 60_000 + "!", regex=True).searched_to == 1


@pytest.mark.parametrize("query", ["(", "a{1001}", r"(?=a)", r"\1", "[", "((((a{100}){100}){100}){100})"])
def test_what_is_no_expression_is_refused_with_the_reason(query: str) -> None:
    with pytest.raises(GraphQLError, match=r"`query` is no regular expression that RE2 takes: .+\.") as refused:
        find(query, "a", regex=True)
    assert refused.value.extensions == {"code": "BAD_USER_INPUT"}
    assert find(query, "x" + query).matches


@pytest.mark.parametrize("query", ["", "a" * (QUERY_MAX + 1), "\ud800"])
def test_what_is_no_text_to_find_is_refused(query: str) -> None:
    with pytest.raises(GraphQLError) as refused:
        find(query, "a")
    assert refused.value.extensions == {"code": "BAD_USER_INPUT"}


def test_a_full_page_stops_at_its_last_match() -> None:
    found = find("a", "a", "b", "a", "a", most=2)
    assert ([line.number for line, _ in found.matches], found.searched_to) == ([1, 3], 3)


def test_one_call_looks_at_so_many_lines_and_no_more() -> None:
    read: list[tuple[int, int]] = []

    def endless(first: int, last: int) -> list[LogLine]:
        read.append((first, last))
        return [LogLine(number, "nothing") for number in range(first, last + 1)]

    pattern = Wanted("x", regex=False, case_sensitive=True).pattern()
    found = search(endless, pattern, after=10, last=10**9, most=5, clock=lambda: 0.0)
    assert (found.matches, found.searched_to) == ([], 10 + LINES_MAX)
    assert (read[0], read[-1][1]) == ((11, 10 + TOGETHER), 10 + LINES_MAX)


def test_one_call_works_for_so_long_and_no_longer_but_always_gets_on() -> None:
    ticks = count()
    pattern = Wanted("x", regex=False, case_sensitive=True).pattern()
    texts = [""] * (TOGETHER * 3)
    found = search(log(*texts), pattern, after=0, last=len(texts), most=5, clock=lambda: float(next(ticks)))
    assert found.searched_to == TOGETHER


TEXTS = st.text(st.sampled_from("ab.ß€😀é\u0130K"), max_size=12)


@given(st.lists(TEXTS, max_size=12), TEXTS.filter(bool), st.integers(1, 4))
def test_pages_one_after_the_other_are_every_line_that_has_the_text(texts: list[str], query: str, most: int) -> None:
    pattern, after = Wanted(query, regex=False, case_sensitive=True).pattern(), 0
    seen: list[int] = []
    while after < len(texts):
        found = search(log(*texts), pattern, after=after, last=len(texts), most=most, clock=lambda: 0.0)
        assert found.searched_to > after
        for line, ranges in found.matches:
            seen.append(line.number)
            assert [line.text[start:end] for start, end in ranges] == [query] * len(ranges)
            assert list(ranges) == [match.span() for match in re.finditer(re.escape(query), line.text)]
        after = found.searched_to
    assert seen == [number for number, text in enumerate(texts, 1) if query in text]


@given(TEXTS, st.integers(0, 12), st.integers(0, 12))
def test_ranges_are_counted_as_javascript_does(text: str, one: int, other: int) -> None:
    start, end = sorted((min(one, len(text)), min(other, len(text))))
    (found,) = utf16(text, [(start, end)])
    units = text.encode("utf-16-le")
    assert units[2 * found.start : 2 * found.end].decode("utf-16-le") == text[start:end]
