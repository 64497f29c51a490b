import hashlib
import stat
import zipfile
from pathlib import Path

import pytest

from starforge.adapters.local.unpacking import CapsuleUnusable, fetch, unpack


def nothing() -> None:
    """Nobody wants to stop."""


def zipped(path: Path, members: dict[str, str], mode: int = stat.S_IFREG | 0o644) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            member = zipfile.ZipInfo(name)
            member.external_attr = mode << 16
            archive.writestr(member, content)
    return path


def test_what_is_below_the_top_is_unpacked(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "c.zip", {"capsule/train.py": "1", "capsule/.starforge/runner.pex": "2"})
    unpack(archive, tmp_path / "code", check=nothing)
    assert (tmp_path / "code/train.py").read_text() == "1"
    assert (tmp_path / "code/.starforge/runner.pex").read_text() == "2"


def test_files_that_can_be_executed_stay_so(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "c.zip", {"capsule/run.sh": ""}, stat.S_IFREG | 0o755)
    unpack(archive, tmp_path / "code", check=nothing)
    assert (tmp_path / "code/run.sh").stat().st_mode & stat.S_IXUSR


@pytest.mark.parametrize("name", ["capsule/../../evil", "/capsule/evil", "other/evil", "evil", "capsule"])
def test_nothing_is_written_elsewhere(tmp_path: Path, name: str) -> None:
    archive = zipped(tmp_path / "c.zip", {name: "x"})
    code = tmp_path / "a" / "code"
    code.parent.mkdir()
    with pytest.raises(CapsuleUnusable, match="no regular file below"):
        unpack(archive, code, check=nothing)
    assert [path for path in (tmp_path / "a").rglob("*") if path.is_file()] == []


def test_links_are_refused(tmp_path: Path) -> None:
    archive = zipped(tmp_path / "c.zip", {"capsule/link": "/etc/passwd"}, stat.S_IFLNK | 0o777)
    with pytest.raises(CapsuleUnusable):
        unpack(archive, tmp_path / "code", check=nothing)


def test_what_is_no_zip_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.zip").write_text("no zip")
    with pytest.raises(CapsuleUnusable, match="no readable zip"):
        unpack(tmp_path / "c.zip", tmp_path / "code", check=nothing)


def test_a_capsule_with_the_right_checksum_is_fetched(tmp_path: Path) -> None:
    source = zipped(tmp_path / "c.zip", {"capsule/a": "1"})
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    fetch(source.as_uri(), {}, tmp_path / "copy.zip", sha256=digest, ca_file=None, check=nothing)
    assert (tmp_path / "copy.zip").read_bytes() == source.read_bytes()


def test_another_checksum_is_refused(tmp_path: Path) -> None:
    source = zipped(tmp_path / "c.zip", {"capsule/a": "1"})
    with pytest.raises(CapsuleUnusable, match="another checksum"):
        fetch(source.as_uri(), {}, tmp_path / "copy.zip", sha256="0" * 64, ca_file=None, check=nothing)


def test_a_missing_capsule_is_told_without_its_url(tmp_path: Path) -> None:
    url = f"{(tmp_path / 'gone.zip').as_uri()}?signature=hush"
    with pytest.raises(CapsuleUnusable) as caught:
        fetch(url, {}, tmp_path / "copy.zip", sha256="0" * 64, ca_file=None, check=nothing)
    assert "can't be fetched" in str(caught.value)
    assert "hush" not in str(caught.value)
