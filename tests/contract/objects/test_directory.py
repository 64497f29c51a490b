"""What a directory store promises beyond the port."""

import stat
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest

from starforge.adapters.objects import DirectoryObjects
from starforge.domain.errors import ObjectStoreUnavailable
from starforge.domain.ports import Audience
from tests.contract.objects.gateway import Clock, send


def file_of(url: str) -> Path:
    return Path(unquote(urlsplit(url).path))


def test_a_pod_reads_the_file_itself(directory: DirectoryObjects) -> None:
    directory.put("capsules/a b.zip", b"zip")
    signed = directory.sign_get("capsules/a b.zip", seconds=60, audience=Audience.POD)
    assert signed.url.startswith("file:///")
    assert file_of(signed.url).read_bytes() == b"zip"


def test_a_claim_can_be_made_once(directory: DirectoryObjects) -> None:
    signed = directory.sign_put("logs/job-1/1/claim", seconds=60, audience=Audience.POD, only_new=True)
    file_of(signed.url).open("x").close()
    assert directory.size("logs/job-1/1/claim") == 0
    with pytest.raises(FileExistsError):
        file_of(signed.url).open("x")


def test_a_link_ends(directory: DirectoryObjects, clock: Clock) -> None:
    directory.put("a", b"x")
    signed = directory.sign_get("a", seconds=60, audience=Audience.CLIENT)
    clock.time = signed.expires_at - timedelta(seconds=1)
    assert send(signed)[0] == 200
    clock.time = signed.expires_at
    assert send(signed)[0] == 403


def test_the_condition_of_a_put_is_signed(directory: DirectoryObjects) -> None:
    signed = directory.sign_put("a", seconds=60, audience=Audience.CLIENT, only_new=True)
    assert send(signed, b"x", url=signed.url.replace("only_new=1", "only_new=0"))[0] == 403
    assert send(signed, b"x", url=signed.url.replace("only_new=1&", ""))[0] == 403


@pytest.mark.parametrize(
    "query", [{}, {"expires": "٣", "signature": "x"}, {"expires": "9" * 40}, {"expires": "-1"}, {"signature": "ü"}]
)
def test_a_query_of_anybody_is_refused(directory: DirectoryObjects, query: dict[str, str]) -> None:
    assert not directory.verify("a", "GET", query)
    assert not directory.verify("../a", "GET", query)


def test_links_are_good_in_every_process_with_the_directory(
    directory: DirectoryObjects, tmp_path: Path, clock: Clock
) -> None:
    other = DirectoryObjects(tmp_path / "objects", "http://elsewhere/", now=clock)
    url = other.sign_get("a", seconds=60, audience=Audience.CLIENT).url
    assert url.startswith("http://elsewhere/objects/a?")
    assert directory.verify("a", "GET", dict(parse_qsl(urlsplit(url).query)))


def test_the_signing_key_is_for_its_owner_alone(directory: DirectoryObjects, tmp_path: Path) -> None:
    key = tmp_path / "objects" / ".signing-key"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert len(key.read_bytes()) == 32


def test_nothing_is_left_of_a_put_that_failed(directory: DirectoryObjects, tmp_path: Path) -> None:
    with pytest.raises(ObjectStoreUnavailable, match="No such file"):
        directory.put("a", tmp_path / "missing")
    assert directory.size("a") is None
    assert list((tmp_path / "objects" / ".drafts").iterdir()) == []


def test_a_root_that_is_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ObjectStoreUnavailable, match="can't be used"):
        DirectoryObjects(tmp_path / "file", "http://x").prepare()


def test_a_check_says_that_nothing_can_be_kept(tmp_path: Path) -> None:
    (tmp_path / "root").write_text("no directory")
    with pytest.raises(ObjectStoreUnavailable):
        DirectoryObjects(tmp_path / "root", "http://gateway").check()
