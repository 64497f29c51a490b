"""Capacity as a page, as lines of what changed, and as a table that is patched step by step."""

import io
import json
from typing import Any

import pytest
from rich.console import Console, RenderableType

from starforge.cli.screens.capacity import JsonCapacity, LiveCapacity, PlainCapacity, Seen
from starforge.cli.views.capacity import capacity_page
from starforge.cli.views.fits import fit_page
from tests.unit.cli.api_answers import AT, a_cause, a_demand, a_fleet, a_holder, a_node

Json = dict[str, Any]


def shown(page: RenderableType, width: int = 160) -> str:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False, markup=False).print(page)
    return out.getvalue()


def page(fleet: Json, *nodes: Json) -> list[str]:
    return [" ".join(line.split()) for line in shown(capacity_page(fleet, nodes)).splitlines() if line.strip()]


def a_step(fleet: Json, *nodes: Json, kind: str = "UPDATED", removed: tuple[str, ...] = ()) -> Json:
    return {
        "cursor": "c",
        "kind": kind,
        "at": AT,
        "fleet": fleet,
        "changedNodes": list(nodes),
        "removedNodeIds": removed,
    }


def test_series_nodes_and_what_waits() -> None:
    nodes = a_node("node-a", used=3), a_node("node-b", blocked=4)
    lines = page(a_fleet(*nodes, waiting=[a_demand()]), *nodes)
    assert lines[0].startswith("kuberay Heard at ")
    assert lines[1:] == [
        "SERIES TOTAL USED FREE BLOCKED LARGEST FREE",
        "h200 8 3 1 4 1 4 CORDONED: node-b is cordoned.",
        "NODE SERIES TOTAL USED FREE BLOCKED",
        "node-a h200 4 3 1 0 3 held by digits (job-1) pool train",
        "node-b h200 4 0 0 4 4 CORDONED: node-b is cordoned.",
        "WAITS POOL SERIES MACHINES GPUS EACH",
        lines[-1],
    ]
    assert lines[-1].startswith("waits (job-2) train h200 2 4 2 machines find no node. Since ")


def test_what_is_unseen_has_no_name() -> None:
    unseen = {"name": None, "workload": None, "pool": None}
    holders = [a_holder(**unseen), a_holder(**unseen, kind="FOREIGN", releasing=True)]
    node = a_node("node-a", used=3, holders=holders)
    lines = page(a_fleet(node, waiting=[a_demand(workload=None, pool=None)]), node)
    assert "node-a h200 4 3 1 0 3 held by another project" in lines
    assert "3 held by a foreign Pod, going" in lines
    assert lines[-1].startswith("another project h200 2 4")


def test_what_is_unknown_or_old_is_said() -> None:
    never = {"freshness": "NEVER", "observedAt": None, "staleSince": None, "problem": None}
    assert page(a_fleet(series=None, observation=never)) == [
        "kuberay Its nodes were never seen, so nothing is known of its GPUs."
    ]
    stale = {"freshness": "STALE", "observedAt": AT, "staleSince": AT, "problem": {"message": "Nobody observes it."}}
    assert "Nobody observes it. Heard at" in page(a_fleet(observation=stale))[0]


def test_only_nodes_that_changed_are_patched() -> None:
    seen = Seen()
    seen.take(a_step(a_fleet(), a_node("node-b"), a_node("node-a"), kind="SNAPSHOT"))
    fleet = seen.take(a_step(a_fleet(), a_node("node-b", blocked=4), removed=("node.kuberay.node-a",)))
    assert [(node["name"], node["blocked"]) for node in seen.nodes_of(fleet)] == [("node-b", 4)]
    seen.take(a_step(a_fleet(), a_node("node-c"), kind="SNAPSHOT"))
    assert [node["name"] for node in seen.nodes_of(fleet)] == ["node-c"]


def test_plain_lines_tell_what_changed() -> None:
    out, err = io.StringIO(), io.StringIO()
    screen = PlainCapacity(Console(file=err), out)
    before, after = (a_node("node-a"), a_node("node-b")), a_node("node-b", blocked=4)

    def told(step: Json) -> list[str]:
        start = len(out.getvalue())
        screen.change(step)
        return [line.partition(":00 ")[2] or line for line in out.getvalue()[start:].splitlines()]

    first = told(a_step(a_fleet(*before), *before, kind="SNAPSHOT"))
    assert [line.split()[-1] for line in first] == ["heard", "4", "blocked", "blocked"]
    waiting = [a_demand()]
    changed = told(a_step(a_fleet(before[0], after, waiting=waiting), after))
    assert any("8 total, 0 used, 4 free, 4 blocked, largest free 4; 4 CORDONED" in line for line in changed)
    assert any(line.endswith("0 of 4 used, 0 free, 4 blocked; 4 CORDONED: node-b is cordoned.") for line in changed)
    assert any("waits waits (job-2) train: 2 x 4 h200 GPUs: 2 machines find no node." in line for line in changed)
    assert len(changed) == 3
    gone = told(a_step(a_fleet(before[0]), removed=(after["id"],)))
    assert sum(line.endswith(": no more") for line in gone) == 2
    assert told(a_step(a_fleet(before[0]))) == []
    screen.note("The connection is back.")
    assert err.getvalue() == "The connection is back.\n"


def test_a_terminal_shows_the_newest_in_place() -> None:
    out = io.StringIO()
    nasty = a_node("node-a", causes=[a_cause(message="\x1b]0;title\x07[red]x")], blocked=4)
    with LiveCapacity(Console(file=out, width=160, force_terminal=True, markup=False)) as screen:
        screen.change(a_step(a_fleet(nasty), nasty, kind="SNAPSHOT"))
        screen.note("Trying again …")
    text = out.getvalue()
    assert "\x1b]0;" not in text
    assert "\\x1b]0;title" in text
    assert "[red]x" in text


def test_json_is_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    with JsonCapacity(Console()) as screen:
        screen.change(a_step(a_fleet(), a_node("node-a")))
    assert json.loads(capsys.readouterr().out)["changedNodes"][0]["name"] == "node-a"


def test_a_fit_names_who_must_end() -> None:
    pool = {"pool": "train", "verdict": "LATER", "message": "1 of 2 can be placed now.", "placeable": 1, "nodes": ["a"]}
    fleet = {
        "fleet": "kuberay", "verdict": "LATER", "message": "", "observedAt": AT, "latestStartAt": AT, "pools": [pool],
        "mustEnd": [a_holder(nodes=["node-a", "node-b"])],
    }  # fmt: skip
    report = {"verdict": "LATER", "message": "Not now.", "fleet": "kuberay", "fleets": [fleet], "userErrors": []}
    lines = [" ".join(line.split()) for line in shown(fit_page(report)).splitlines() if line.strip()]
    assert lines[0] == "LATER Not now."
    assert lines[2] == "kuberay train LATER 1 1 of 2 can be placed now."
    assert lines[3].startswith("It fits once these have ended. It fits by ")
    assert lines[4] == "3 held by digits (job-1) pool train on node-a, node-b"
