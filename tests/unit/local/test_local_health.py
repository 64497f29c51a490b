"""This machine is well while runs can be kept."""

from pathlib import Path

from starforge.adapters.local.fleet import LocalFleet
from starforge.domain.health import HealthCheckKind, HealthStatus
from starforge.domain.spec import Deadlines, FleetDefaults

DEFAULTS = FleetDefaults("local", None, 1, "2Gi", "1Gi", Deadlines(0, 1800, 0), 30)


def test_a_directory_that_can_not_be_written_is_down(tmp_path: Path) -> None:
    fleet = LocalFleet(tmp_path / "runs", gpus={}, defaults=DEFAULTS)
    (tmp_path / "runs").rmdir()
    [found] = fleet.health().findings
    assert (found.kind, found.status) == (HealthCheckKind.STORAGE, HealthStatus.DOWN)
    assert str(tmp_path / "runs") in str(found.message)
