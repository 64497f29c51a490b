"""The table of docs/reliability.md keeps the rows of other runs, in the order of the catalogue."""

from pathlib import Path

import pytest

from tests.e2e.faults.__main__ import cannot
from tests.e2e.faults.catalogue import catalogue
from tests.e2e.faults.cluster import Cluster
from tests.e2e.faults.playing import row_of, spec
from tests.e2e.faults.report import BEGIN, END, TTL_BEGIN, TTL_END, Row, merged, spread, summary, with_ttl

PAGE = Path(__file__).parents[3] / "docs" / "reliability.md"
GOOD = Row("Redis killed", "running", jobs=2, right=2, whole=2, released_s=(2.0, 3.0))


def table(page: str) -> list[str]:
    return page.partition(f"{BEGIN}\n")[2].partition(f"{END}\n")[0].splitlines()


def test_a_row_is_ok_only_if_everything_is() -> None:
    assert GOOD.is_ok
    for broken in (
        Row("a", "b", jobs=2, right=1, whole=2),
        Row("a", "b", jobs=2, right=2, whole=1),
        Row("a", "b", jobs=2, right=2, whole=2, lost=1),
        Row("a", "b", jobs=2, right=2, whole=2, doubled=1),
        Row("a", "b", jobs=2, right=2, whole=2, left=1),
        Row("a", "b", jobs=2, right=2, whole=2, problems=("it could not be healed",)),
        Row("a", "b", skipped="no cluster"),
        Row("a", "b"),
    ):
        assert not broken.is_ok, broken


def test_rows_replace_older_ones_and_leave_the_others() -> None:
    page = f"before\n{BEGIN}\n{END}\nafter\n"
    order = ["etcd killed", "Redis killed", "Redis emptied"]
    once = merged(page, [Row("Redis emptied", "pending", jobs=1, right=1, whole=1), GOOD], order)
    assert [text.split("|")[1].strip() for text in table(once)[2:]] == ["Redis killed", "Redis emptied"]
    again = merged(once, [Row("Redis killed", "running", jobs=7), Row("etcd killed", "running", skipped="why")], order)
    assert [text.split("|")[3].strip() for text in table(again)[2:]] == ["7", "1"]
    assert again.startswith("before\n")
    assert again.endswith("after\n")
    assert merged(again, [], order[:1]).count("\n| ") == 1, "the headings alone"


def test_a_page_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="has no"):
        merged("nothing here", [GOOD], [GOOD.fault])


def test_the_ttl_is_told_in_its_place() -> None:
    page = with_ttl(f"a\n{TTL_BEGIN}\nold\n{TTL_END}\nb\n", 10, 21.26)
    told = "With a TTL of 10 s, the last Pod was gone 21.3 s after the end of the code."
    assert page == f"a\n{TTL_BEGIN}\n{told}\n{TTL_END}\nb\n"
    assert TTL_BEGIN in PAGE.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="has no"):
        with_ttl("nothing here", 10, 1)


def test_seconds_are_the_median_and_the_most() -> None:
    assert spread(()) == "–"
    assert spread((1.26,)) == "1.3"
    assert spread((1.0, 2.0, 9.0)) == "2.0 (at most 9.0)"


def test_the_summary_counts_what_was_tried() -> None:
    assert summary([GOOD, Row("a", "b", skipped="no cluster")]).startswith("1 faults, 2 jobs, 2 ended right, 0 lost")


def test_a_job_that_could_not_be_judged_is_lost() -> None:
    fault = catalogue()[0]
    assert row_of(fault, 2, [], ["why"]).lost == 2


def test_the_page_has_a_place_for_the_table_and_rows_of_known_faults_alone() -> None:
    page = PAGE.read_text(encoding="utf-8")
    names = [fault.name for fault in catalogue()]
    assert merged(page, [], names) == page


def test_every_fault_of_the_catalogue_can_be_told_apart_and_has_jobs() -> None:
    faults = catalogue()
    assert len({fault.name for fault in faults}) == len(faults)
    for fault in faults:
        assert fault.works, fault.name
        for work in fault.works:
            assert work.ends
            assert {pool["series"] for pool in spec(work, {})["pools"]} <= {"h200", "b200"}


def test_what_a_fault_needs_and_is_not_there(tmp_path: Path) -> None:
    faults = {fault.name: fault for fault in catalogue()}
    redis, etcd, drained = faults["Redis killed"], faults["etcd killed"], faults["node cordoned and drained"]
    assert cannot(redis, None, local=True) is None
    assert cannot(etcd, None, local=True) == "it needs a Kubernetes cluster"
    assert "CLUSTER_RESTART" in (cannot(redis, None, local=False) or "")
    there = Cluster(tmp_path / "env", "restart", tmp_path / "token")
    assert cannot(drained, there, local=False) is None
    assert cannot(etcd, there, local=False) == f"it needs pid/etcd, command/etcd in {tmp_path}"


def test_ci_tries_one_of_each_kind() -> None:
    samples = [fault.kind for fault in catalogue() if fault.sample]
    assert sorted(samples) == sorted({fault.kind for fault in catalogue()})
    assert all(fault.shortened().lasts_s <= fault.lasts_s for fault in catalogue())
