"""What every object store promises (domain/ports.py: ObjectStore)."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from starforge.domain.errors import Defect, NotFound
from starforge.domain.ports import Audience, ObjectStore
from tests.contract.objects.gateway import send

KEY = "code/a b+ü.zip"


def test_what_was_put_is_read_fetched_and_measured(store: ObjectStore, tmp_path: Path) -> None:
    assert store.put(KEY, b"0123456789")
    assert (store.size(KEY), store.read(KEY)) == (10, b"0123456789")
    store.fetch(KEY, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"0123456789"


def test_a_file_is_stored_and_a_second_put_replaces(store: ObjectStore, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"new" * 1000)
    assert store.put(KEY, b"old")
    assert store.put(KEY, source)
    assert store.read(KEY) == b"new" * 1000


def test_a_file_of_several_parts_arrives_whole(store: ObjectStore, tmp_path: Path) -> None:
    source, copy = tmp_path / "big", tmp_path / "copy"
    source.write_bytes(bytes(range(256)) * (70 << 12))
    assert store.put("logs/job-1/1/big", source)
    store.fetch("logs/job-1/1/big", copy)
    assert copy.read_bytes() == source.read_bytes()


@pytest.mark.parametrize(
    ("start", "length", "part"),
    [
        (0, 3, b"012"),
        (4, None, b"456789"),
        (8, 100, b"89"),
        (10, 5, b""),
        (99, None, b""),
        (3, 0, b""),
        (0, None, b"0123456789"),
    ],
)
def test_parts_are_read(store: ObjectStore, start: int, length: int | None, part: bytes) -> None:
    store.put(KEY, b"0123456789")
    assert store.read(KEY, start=start, length=length) == part


def test_an_empty_object_is_an_object(store: ObjectStore) -> None:
    assert store.put(KEY, b"")
    assert (store.size(KEY), store.read(KEY), store.read(KEY, start=0, length=5)) == (0, b"", b"")


def test_only_new_keeps_what_is_there(store: ObjectStore, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"second")
    assert store.put(KEY, b"first", only_new=True)
    assert not store.put(KEY, b"second", only_new=True)
    assert not store.put(KEY, source, only_new=True)
    assert store.read(KEY) == b"first"


def test_of_many_that_put_at_once_one_wins(store: ObjectStore) -> None:
    line_up = threading.Barrier(8)

    def put(number: int) -> bool:
        line_up.wait(timeout=10)
        return store.put(KEY, f"writer {number}".encode(), only_new=True)

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(put, range(8)))
    assert won.count(True) == 1
    assert store.read(KEY) == f"writer {won.index(True)}".encode()


def test_what_is_missing_is_told(store: ObjectStore, tmp_path: Path) -> None:
    assert store.size(KEY) is None
    store.delete(KEY)
    with pytest.raises(NotFound, match="code/a b"):
        store.read(KEY)
    with pytest.raises(NotFound):
        store.read(KEY, start=2, length=0)
    with pytest.raises(NotFound):
        store.read(KEY, start=2)
    with pytest.raises(NotFound):
        store.fetch(KEY, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def test_what_was_deleted_is_gone_and_new_again(store: ObjectStore) -> None:
    store.put(KEY, b"x")
    store.delete(KEY)
    assert store.size(KEY) is None
    assert store.put(KEY, b"y", only_new=True)


def test_a_check_may_be_made_any_number_of_times_and_at_once(checking: ObjectStore) -> None:
    """Not on moto's server, which answers 500 while an object is replaced that somebody reads."""
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: checking.check(), range(8))) == [None] * 8


def test_preparing_again_loses_nothing(store: ObjectStore) -> None:
    store.put(KEY, b"x")
    store.prepare()
    assert store.read(KEY) == b"x"


@pytest.mark.parametrize(
    "key", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/", "./a", "a\\b", "a\0b", ".signing-key", "a" * 901]
)
def test_a_key_that_could_escape_is_refused(store: ObjectStore, key: str) -> None:
    with pytest.raises(Defect):
        store.put(key, b"x")
    with pytest.raises(Defect):
        store.sign_get(key, seconds=60, audience=Audience.CLIENT)


def test_a_signed_get_gives_the_object(store: ObjectStore) -> None:
    store.put(KEY, b"hello")
    signed = store.sign_get(KEY, seconds=600, audience=Audience.CLIENT)
    assert signed.method == "GET"
    assert send(signed) == (200, b"hello")


def test_the_path_of_a_link_ends_like_the_key(store: ObjectStore) -> None:
    for audience in Audience:
        assert (
            store.sign_get("capsules/1.zip", seconds=9, audience=audience).url.split("?")[0].endswith("/capsules/1.zip")
        )


def test_a_signed_put_stores(store: ObjectStore) -> None:
    signed = store.sign_put(KEY, seconds=600, audience=Audience.CLIENT, only_new=False)
    assert send(signed, b"one")[0] == 200
    assert send(signed, b"two")[0] == 200
    assert store.read(KEY) == b"two"


def test_a_signed_put_of_a_new_object_is_refused_the_second_time(store: ObjectStore) -> None:
    signed = store.sign_put(KEY, seconds=600, audience=Audience.CLIENT, only_new=True)
    assert send(signed, b"one")[0] == 200
    assert send(signed, b"two")[0] == 412
    assert store.read(KEY) == b"one"


def test_a_changed_link_is_refused(checking: ObjectStore) -> None:
    checking.put("code/1.zip", b"1")
    checking.put("code/2.zip", b"2")
    signed = checking.sign_get("code/1.zip", seconds=600, audience=Audience.CLIENT)
    name = "X-Amz-Signature=" if "X-Amz-Signature=" in signed.url else "signature="
    digit = signed.url.split(name)[1][0]
    assert send(signed, url=signed.url.replace("1.zip", "2.zip"))[0] == 403
    assert send(signed, url=signed.url.replace(f"{name}{digit}", f"{name}{'1' if digit == '0' else '0'}"))[0] == 403
    assert send(signed, url=signed.url.split("?")[0])[0] == 403
    assert send(signed) == (200, b"1")


def test_a_link_to_read_does_not_let_write(checking: ObjectStore) -> None:
    checking.put(KEY, b"kept")
    get = checking.sign_get(KEY, seconds=600, audience=Audience.CLIENT)
    put = checking.sign_put(KEY, seconds=600, audience=Audience.CLIENT, only_new=False)
    assert send(put, b"lost", url=get.url)[0] == 403
    assert checking.read(KEY) == b"kept"


def test_the_end_of_a_signature_is_told(store: ObjectStore) -> None:
    early = datetime(2020, 1, 1, tzinfo=UTC)
    short = store.sign_get(KEY, seconds=60, audience=Audience.CLIENT).expires_at
    long = store.sign_get(KEY, seconds=1e12, audience=Audience.CLIENT).expires_at
    assert early < short < long
    assert long - short <= timedelta(seconds=store.longest_signature_s)
