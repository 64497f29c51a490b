"""What of the schema changed since the last release, and whether everything that breaks a client is noted."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from graphql import GraphQLSchema, build_schema, find_breaking_changes, find_dangerous_changes
from graphql.utilities import DangerousChangeType

MUST_BE_NOTED = frozenset(
    {DangerousChangeType.ARG_DEFAULT_VALUE_CHANGE, DangerousChangeType.INPUT_FIELD_DEFAULT_VALUE_CHANGE}
)
"""They validate as before and mean something else. The other dangerous ones are announced in the schema's own words:
whatever is added may be added at any time."""

NOTES = "schema-changes.md"
UNRELEASED = "## Not released yet"
_ROW = re.compile(r"^\| *(?P<day>[^|]*?) *\| *`(?P<change>[^|]*)` *\| *(?P<why>[^|]*?) *\|$")


class NotesWrong(Exception):
    """schema-changes.md can't be read; the text says which line and why."""


@dataclass(frozen=True)
class Note:
    """A breaking change that was decided on."""

    day: date
    change: str
    why: str


def unnoted(notes: str, released: str, schema: str) -> list[str]:
    """What to say of the schema, given the text of schema-changes.md and the schema of the last release."""
    try:
        lines = complaints(changes_to_note(released, schema), read_notes(notes))
    except NotesWrong as wrong:
        return [str(wrong)]
    if lines:
        lines.append(f"A change that breaks clients is noted in {NOTES}, with the day and the reason, or not made.")
    return lines


def changes_to_note(old: GraphQLSchema | str, new: GraphQLSchema | str) -> list[str]:
    """One line per change for which a client has to be changed, as `CODE sentence`, sorted."""
    before, after = _schema(old), _schema(new)
    dangerous = [(kind, text) for kind, text in find_dangerous_changes(before, after) if kind in MUST_BE_NOTED]
    return sorted(f"{kind.name} {text}" for kind, text in (*find_breaking_changes(before, after), *dangerous))


def read_notes(text: str) -> list[Note]:
    """The rows below UNRELEASED. NotesWrong if there is no such heading or a row is not a note."""
    if UNRELEASED not in text.splitlines():
        raise NotesWrong(f"schema-changes.md has no line `{UNRELEASED}`.")
    section = text.split(UNRELEASED + "\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [_note(row) for row in rows[2:]]  # behind the heads of the columns and their rule


def complaints(changes: Sequence[str], notes: Sequence[Note]) -> list[str]:
    """A line for each change that nobody noted and for each note of a change that is not there."""
    noted = [note.change for note in notes]
    return [
        *(f"breaking, and not noted: {change}" for change in changes if change not in noted),
        *(f"noted, and not there: {change}" for change in noted if change not in changes),
        *(f"noted twice: {change}" for change in sorted({one for one in noted if noted.count(one) > 1})),
    ]


def release(text: str, version: str) -> str:
    """The notes as they are once everything that they tell of is released."""
    head, tail = text.split(UNRELEASED + "\n", 1)
    section, more, older = tail.partition("\n## ")
    empty = "\n".join(section.splitlines()[: _rule(section) + 1])
    return f"{head}{UNRELEASED}\n{empty}\n\n## {version}\n{section.rstrip()}\n{more}{older}"


def _rule(section: str) -> int:
    return next(index for index, line in enumerate(section.splitlines()) if line.startswith("|--"))


def _schema(given: GraphQLSchema | str) -> GraphQLSchema:
    return build_schema(given) if isinstance(given, str) else given


def _note(row: str) -> Note:
    match = _ROW.match(row)
    if not match or not match["why"]:
        raise NotesWrong(f"schema-changes.md: `{row}` is not `| day | `change` | why |`.")
    try:
        return Note(date.fromisoformat(match["day"]), match["change"], match["why"])
    except ValueError as wrong:
        raise NotesWrong(f"schema-changes.md: `{match['day']}` is not a day like 2026-03-31.") from wrong
