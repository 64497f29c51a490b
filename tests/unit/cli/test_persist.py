import json
from pathlib import Path

import pytest

from starforge.api.transport.persisted import id_of
from starforge.cli.exits import ExitCode
from starforge.cli.verbs.persist import manifest, run
from starforge.domain.errors import UserMistake

FILES = {
    "one.graphql": "query A {job(id: 1) {...Row}} mutation B {x}",
    "two.graphql": "fragment Row on Job {id ...Name} fragment Name on Job {name} fragment Other on Job {state}",
}


def test_a_document_has_its_operation_and_the_fragments_it_needs_and_no_other() -> None:
    found = manifest(FILES, by_name=True)
    assert list(found) == ["A", "B"]
    assert [line for line in found["A"].splitlines() if line.endswith("{") and not line.startswith(" ")] == [
        "query A {",
        "fragment Name on Job {",
        "fragment Row on Job {",
    ]
    assert found["B"] == "mutation B {\n  x\n}"


def test_ids_are_hashes_of_documents() -> None:
    assert manifest(FILES) == {id_of(text): text for text in manifest(FILES, by_name=True).values()}


def test_the_order_of_files_and_fragments_changes_nothing() -> None:
    turned = dict(reversed(FILES.items()))
    assert manifest(turned) == manifest(FILES)


def test_fragments_that_spread_each_other_end() -> None:
    text = "query A {...F} fragment F on Query {...G} fragment G on Query {...F}"
    assert manifest({"a": text}, by_name=True)["A"].count("fragment") == 2


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("query A {", r"a\.graphql:1:10 is not GraphQL: Syntax Error"),
        ("{x}", "has no name"),
        ("query A {x} query A {y}", "two called A"),
        ("query A {...F}", "no fragment called F"),
        ("type A {x: Int}", "definitions of a schema"),
    ],
)
def test_what_makes_no_manifest_is_said(text: str, sentence: str) -> None:
    with pytest.raises(UserMistake, match=sentence):
        manifest({"a.graphql": text})


def test_it_is_printed_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    assert run([tmp_path / name for name in FILES], by_name=False) == ExitCode.SUCCEEDED
    assert json.loads(capsys.readouterr().out) == manifest(FILES)


def test_a_file_that_is_no_text_is_said(tmp_path: Path) -> None:
    file = tmp_path / "a.graphql"
    file.write_bytes(b"\xff")
    with pytest.raises(UserMistake, match=r"a\.graphql can't be read as text"):
        run([file], by_name=False)
