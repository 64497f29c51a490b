"""A change that breaks clients is noted, or refused."""

import importlib
import shutil
import sys
from pathlib import Path

import pytest
from graphql import build_schema

from scripts.schema_changes import NotesWrong, changes_to_note, complaints, read_notes, release, unnoted

ROOT = Path(__file__).parents[2]
OLD = """
    type Query { job(id: ID!, deep: Boolean = false): Job }
    type Job { id: ID! state: JobState! note: String }
    enum JobState { RUNNING ENDED }
    input Filter { active: Boolean = true }
"""
NOTES = """# Breaking changes

## Not released yet

| Day | Change | Why |
|---|---|---|
| 2026-03-01 | `FIELD_REMOVED Field Job.note was removed.` | Nobody asked for it. |

## 1.0

| Day | Change | Why |
|---|---|---|
| 2025-03-01 | `FIELD_REMOVED Field Job.age was removed.` | It was wrong. |
"""


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("note: String", "", ["FIELD_REMOVED Field Job.note was removed."]),
        ("state: JobState!", "state: JobState", ["FIELD_CHANGED_KIND"]),
        ("RUNNING ENDED", "RUNNING", ["VALUE_REMOVED_FROM_ENUM"]),
        ("id: ID!,", "id: ID!, by: ID!,", ["REQUIRED_ARG_ADDED"]),
        ("deep: Boolean = false", "deep: Boolean = true", ["ARG_DEFAULT_VALUE_CHANGE"]),
        ("active: Boolean = true", "active: Boolean = false", ["INPUT_FIELD_DEFAULT_VALUE_CHANGE"]),
        ("RUNNING ENDED", "RUNNING ENDED QUEUED", []),
        ("note: String", "note: String age: Int", []),
        ("deep: Boolean = false", "deep: Boolean = false, by: ID", []),
    ],
)
def test_what_breaks_clients_is_found(before: str, after: str, expected: list[str]) -> None:
    found = changes_to_note(OLD, OLD.replace(before, after))
    assert len(found) == len(expected)
    assert all(line.startswith(start) for line, start in zip(found, expected, strict=True)), found


def test_only_what_is_not_released_is_read() -> None:
    assert [note.change for note in read_notes(NOTES)] == ["FIELD_REMOVED Field Job.note was removed."]


def test_a_noted_change_passes_and_others_are_named() -> None:
    noted = ["FIELD_REMOVED Field Job.note was removed."]
    assert complaints(noted, read_notes(NOTES)) == []
    assert complaints([*noted, "TYPE_REMOVED Type Job was removed."], read_notes(NOTES)) == [
        "breaking, and not noted: TYPE_REMOVED Type Job was removed."
    ]


def test_a_note_of_nothing_is_refused() -> None:
    assert complaints([], read_notes(NOTES)) == ["noted, and not there: FIELD_REMOVED Field Job.note was removed."]


def test_a_note_is_written_once() -> None:
    notes = read_notes(NOTES) * 2
    assert complaints([notes[0].change], notes) == [f"noted twice: {notes[0].change}"]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("## Not released yet", "## Soon"),
        ("2026-03-01", "in March"),
        ("2026-03-01", "2026-02-30"),
        ("Nobody asked for it.", ""),
        ("`FIELD_REMOVED Field Job.note was removed.`", "the note"),
    ],
)
def test_notes_that_can_t_be_read_are_refused(right: str, wrong: str) -> None:
    with pytest.raises(NotesWrong, match=r"schema-changes\.md"):
        read_notes(NOTES.replace(right, wrong))


def test_make_check_says_what_to_do() -> None:
    new = OLD.replace("note: String", "")
    assert unnoted(NOTES, OLD, new) == []
    assert unnoted(NOTES, OLD, OLD) == [
        "noted, and not there: FIELD_REMOVED Field Job.note was removed.",
        "A change that breaks clients is noted in schema-changes.md, with the day and the reason, or not made.",
    ]
    assert unnoted("nothing", OLD, new) == ["schema-changes.md has no line `## Not released yet`."]


def test_a_release_moves_the_notes() -> None:
    released = release(NOTES, "1.1")
    assert read_notes(released) == []
    headings = [line for line in released.splitlines() if line.startswith("## ")]
    assert headings == ["## Not released yet", "## 1.1", "## 1.0"]
    assert sorted(line for line in NOTES.splitlines() if "FIELD" in line) == sorted(
        line for line in released.splitlines() if "FIELD" in line
    )
    assert read_notes(release(released, "1.2")) == []


def test_a_release_renews_what_later_changes_are_compared_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    script = importlib.import_module("schema")
    for name in ("docs/reference", "tests/data"):
        (tmp_path / name).mkdir(parents=True)
    shutil.copy(ROOT / "schema-changes.md", tmp_path)
    (tmp_path / "tests/data/pruned.txt").write_text("JobPage: Job.age\n")
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["schema.py", "--release", "9.9"])
    assert script.main() == 0
    assert (tmp_path / "tests/data/pruned.released.txt").read_text() == "JobPage: Job.age\n"
    assert (tmp_path / "docs/reference/released.graphql").read_text() == (tmp_path / "schema.graphql").read_text()
    assert "## 9.9" in (tmp_path / "schema-changes.md").read_text()


def test_what_is_committed_can_be_compared() -> None:
    build_schema((ROOT / "docs/reference/released.graphql").read_text())
    read_notes((ROOT / "schema-changes.md").read_text())
