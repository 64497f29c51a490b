"""`starforge sweep`, as an administrator uses it: on the database and the fleet alone."""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from starforge.adapters.settings import load_settings
from starforge.adapters.simulated.fleet import SimulatedFleet
from starforge.adapters.store import SqlStore
from starforge.adapters.wiring import fleet as wired_fleet
from starforge.cli.main import app
from starforge.domain.names import RunKey
from starforge.domain.ports import LaunchOrder
from starforge.domain.queries import EventFilter, Window
from tests.contract.fleet.plug import Code
from tests.contract.fleet.simulated import DEFAULTS, order_of

HOUR = timedelta(hours=1)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("FORGE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FORGE_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("FORGE_DEFAULT_FLEET_KIND", "simulated")
    return tmp_path


@pytest.fixture
def stray(data: Path) -> LaunchOrder:
    """A run that was launched an hour ago for a job that the database does not have."""
    order = order_of(Code.RUNS_ON, 1)
    state = data / "simulated.db"
    SimulatedFleet(defaults=DEFAULTS, state=state, clock=lambda: datetime.now(UTC) - HOUR).launch(order)
    return order


@pytest.fixture
def store(data: Path) -> Iterator[SqlStore]:
    store = SqlStore(load_settings({"FORGE_DATA_DIR": str(data), "FORGE_DEFAULT_FLEET_KIND": "simulated"}).database)
    yield store
    store.close()


def sweep(*words: str) -> Result:
    return CliRunner().invoke(app, ["sweep", *words])


def findings(*words: str) -> Any:
    result = sweep(*words, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)["findings"]


def is_there(data: Path, run: RunKey) -> bool:
    settings = load_settings({"FORGE_DATA_DIR": str(data), "FORGE_DEFAULT_FLEET_KIND": "simulated"})
    return any(one.run == run and not one.terminating for one in wired_fleet(settings).ours("forge-any"))


def test_a_dry_run_shows_what_run_why_and_what_it_would_do(data: Path, stray: LaunchOrder) -> None:
    for _ in range(2):
        result = sweep("--dry-run")
        assert result.exit_code == 0
        header, row = result.stdout.splitlines()
        assert header.split("  ")[0] == "WHAT"
        assert "WOULD DO" in header
        for words in (f"SimulatedRun {stray.name}", str(stray.run), "has no job", "if the next sweep finds it too"):
            assert words in row
    assert is_there(data, stray.run)


def test_json_tells_every_object(data: Path, stray: LaunchOrder) -> None:
    (found,) = findings("--dry-run")
    assert (found["job"], found["attempt"], found["step"]) == (stray.run.job, 1, "NOTE")
    assert {one["kind"] for one in found["objects"]} == {"SimulatedRun", "Pod"}
    assert not any(one["terminating"] for one in found["objects"])


def test_it_goes_when_two_sweeps_a_minute_apart_found_it(data: Path, stray: LaunchOrder, store: SqlStore) -> None:
    assert [one["step"] for one in findings()] == ["NOTE"]
    assert [one["step"] for one in findings()] == ["NOTE"]
    assert is_there(data, stray.run)
    store.note_strays("simulated", [], at=datetime.now(UTC))
    store.note_strays("simulated", [stray.run], at=datetime.now(UTC) - timedelta(minutes=2))
    assert [one["step"] for one in findings("--dry-run")] == ["REMOVE"]
    assert [one["step"] for one in findings()] == ["REMOVE"]
    assert not is_there(data, stray.run)
    ((_, entry),) = store.entry_page(EventFilter(), Window(9)).rows
    assert (entry.run, entry.fleet) == (None, "simulated")
    assert stray.name in entry.message


def test_with_nothing_to_do_it_says_so(data: Path) -> None:
    assert findings() == []
    result = sweep()
    assert (result.exit_code, result.stdout) == (0, "")
    assert "agree" in result.stderr


def test_a_database_that_can_not_be_asked_is_told(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGE_DATABASE_URL", f"sqlite:///{data}/missing/forge.db")
    result = sweep("--dry-run")
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr


def test_wrong_settings_are_told(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGE_DEFAULT_FLEET_KIND", "kuberay")
    result = sweep("--dry-run")
    assert result.exit_code == 2
    assert "FORGE_S3_ENDPOINT" in result.stderr
