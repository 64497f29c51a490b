"""The kernel's count of processes killed for want of memory, as both versions of cgroups write it."""

from pathlib import Path

import pytest

from starforge.runner import memory

EVENTS = "low 0\nhigh 0\nmax 31\noom 2\noom_kill 2\noom_group_kill 0\n"
CONTROL = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"


@pytest.mark.parametrize(("files", "kills"), [({"v2": EVENTS}, 2), ({"v1": CONTROL}, 3), ({}, 0)])
def test_the_kernels_count_is_read(
    files: dict[str, str], kills: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(memory, "COUNTERS", (str(tmp_path / "v2"), str(tmp_path / "v1")))
    assert memory.oom_kills() == kills
