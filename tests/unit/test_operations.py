"""What clients will send validates, but for what is listed in tests/data/pruned.txt, which may only shrink.

What it was at the last release is in tests/data/pruned.released.txt, written by `scripts/schema.py --release`.
"""

import pytest
from graphql import parse, validate

from tests.operations import PRUNED, RELEASED, Operation, operations, our_schema, pruned_lines

SCHEMA = our_schema()
OPERATIONS = list(operations(SCHEMA))
RENEW = "run `python -m tests.operations`, and look at the difference before you commit it"


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one.document], ids=lambda one: one.name)
def test_what_is_left_of_an_operation_validates(operation: Operation) -> None:
    assert validate(SCHEMA, parse(operation.document or "")) == []


def test_nothing_is_cut_away_that_the_list_does_not_have() -> None:
    listed = PRUNED.read_text().splitlines()
    now = pruned_lines(OPERATIONS)
    print("\n".join(now))  # noqa: T201
    lost, won = [one for one in now if one not in listed], [one for one in listed if one not in now]
    assert not lost, f"The schema had this before, or clients ask for something new; put it back: {lost}"
    assert not won, f"The schema has this by now, so {PRUNED.name} has to shrink ({RENEW}): {won}"
    assert listed == now, f"{PRUNED.name} is in another order: {RENEW}."


def test_the_list_has_nothing_that_it_did_not_have_at_the_last_release() -> None:
    released = set(RELEASED.read_text().splitlines())
    won = [one for one in PRUNED.read_text().splitlines() if one not in released]
    assert not won, f"Clients were promised this with the last release; put it back into the schema: {won}"


def test_most_operations_are_answered_by_now() -> None:
    names = {one.name for one in OPERATIONS if one.document}
    assert names >= {"JobsTable", "LiveJobsTable", "JobFilterMenus", "JobPage", "LogSearch", "DiffTwoJobs", "SubmitJob"}
    assert len(OPERATIONS) > 35


def test_operations_that_need_nothing_more_are_whole() -> None:
    whole = {one.name for one in OPERATIONS if not one.pruned}
    assert whole >= {"JobsTable", "JobFilterMenus", "LogSearch", "DiffTwoJobs", "LogTail", "LogWindow", "MetricCurves"}
