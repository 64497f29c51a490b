"""The files that come from the schema are as the code says, or `make check` shows the difference."""

from pathlib import Path

import pytest

from scripts.schema_files import REFERENCE, differences, write

PAGE = f"{REFERENCE}/objects.md"
WRITTEN = {"schema.graphql": "type Query { a: Int }\n", PAGE: "a\nb\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / REFERENCE).mkdir(parents=True)
    write(tmp_path, WRITTEN)
    return tmp_path


def test_what_is_committed_as_written_is_fine(root: Path) -> None:
    assert differences(root, WRITTEN) == []


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_that_says_something_else_is_shown(root: Path, name: str) -> None:
    (root / name).write_text("a\nc\n")
    found = differences(root, WRITTEN)
    assert {f"--- {name}", "-c"} <= set(found)
    assert found[-1].startswith("Run `make schema`")


def test_a_page_that_is_missing_or_stale_is_named(root: Path) -> None:
    moved = {"schema.graphql": WRITTEN["schema.graphql"], f"{REFERENCE}/enums.md": "e\n"}
    found = differences(root, moved)
    assert "+e" in found
    assert f"{PAGE} tells of nothing that there is." in found
    write(root, moved)
    assert not (root / PAGE).exists()
    assert differences(root, moved) == []
