"""`starforge token`, as an administrator uses it: on the database alone."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from starforge.cli.main import app

TOKEN = re.compile(r"sf_[0-9a-f]{16}_[0-9a-f]{64}")


@pytest.fixture(autouse=True)
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "forge.db"
    monkeypatch.setenv("FORGE_DATABASE_URL", f"sqlite:///{path}")
    monkeypatch.setenv("FORGE_DEFAULT_FLEET_KIND", "nonsense that a gateway would refuse")
    return path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["token", *words])


def done(*words: str) -> Any:
    result = run(*words, "--json")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def create(*words: str, name: str = "ci", role: str = "submitter") -> Any:
    return done("create", "--name", name, "--role", role, *words)


def test_the_token_alone_is_on_stdout_and_never_again(database: Path) -> None:
    made = run("create", "--name", "ci", "--role", "viewer", "--project", "vision", "--expires", "30d")
    assert made.exit_code == 0
    token = made.stdout.removesuffix("\n")
    assert TOKEN.fullmatch(token)
    assert token not in made.stderr
    assert "VIEWER of vision" in made.stderr
    secret = token.rpartition("_")[2]
    assert secret not in run("list").stdout + run("list", "--json").stdout
    assert not any(secret.encode() in file.read_bytes() for file in database.parent.iterdir())


def test_what_was_made_is_listed() -> None:
    made = create("--project", "vision", "--project", "speech", "--default-project", "vision", "--expires", "90m")
    assert TOKEN.fullmatch(made.pop("token"))
    assert (made["projects"], made["project"], made["role"]) == (["speech", "vision"], "vision", "SUBMITTER")
    assert made["expiresAt"] > made["createdAt"]
    admin = create(name="ops", role="ADMIN")
    assert (admin.pop("token")[:3], admin["projects"], admin["expiresAt"]) == ("sf_", None, None)
    assert done("list") == [made, admin]
    table = run("list").stdout
    assert "speech, vision" in table
    assert "all" in table


def test_a_token_of_one_project_submits_there() -> None:
    assert create("--project", "vision")["project"] == "vision"
    assert create("--project", "vision", "--project", "speech", name="nightly")["project"] is None


def test_a_name_is_free_again_once_its_token_is_revoked() -> None:
    made = create("--project", "vision")
    again = run("create", "--name", "ci", "--role", "admin")
    assert (again.exit_code, again.stdout) == (2, "")
    assert f"The token {made['id']} is named 'ci' already" in " ".join(again.stderr.split())
    done("revoke", made["id"])
    assert create("--project", "vision")["id"] != made["id"]
    assert len(done("list")) == 2


@pytest.mark.parametrize("whole", [False, True])
def test_revoking(*, whole: bool) -> None:
    made = create("--project", "vision")
    given = made["token"] if whole else made["id"]
    first = done("revoke", given)
    assert first["revokedAt"] is not None
    assert done("revoke", given) == first
    said = run("revoke", given)
    assert made["token"] not in said.stdout
    assert f"({made['id']}) is revoked" in said.stdout
    assert "revoked" in run("list").stdout


def test_an_empty_list_says_what_to_do() -> None:
    result = run("list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "token create" in result.stderr


@pytest.mark.parametrize(
    ("words", "sentences"),
    [
        (["--name", "x", "--role", "viewer"], ["Name the projects of the VIEWER"]),
        (["--name", "x", "--role", "admin", "--project", "a"], ["An ADMIN sees every project"]),
        (["--name", " ", "--role", "viewer", "--project", "Bad"], ["Give the token a name", "'Bad' can't be the name"]),
        (["--name", "x", "--role", "viewer", "--project", "a", "--default-project", "b"], ["'b' is none of the token"]),
        (["--name", "x", "--role", "admin", "--expires", "soon"], ["--expires soon"]),
        (["--name", "x", "--role", "admin", "--expires", "0d"], ["--expires 0d"]),
        (["--name", "x", "--role", "admin", "--expires", "999999w"], ["at most ten years"]),
        (["--name", "x", "--role", "root"], ["root"]),
    ],
)
def test_what_can_t_be_is_refused_with_every_sentence(words: list[str], sentences: list[str]) -> None:
    result = run("create", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert all(sentence in result.stderr for sentence in sentences)
    assert done("list") == []


def test_what_is_not_there_can_t_be_revoked_and_is_not_repeated() -> None:
    damaged = create("--project", "vision")["token"][:-1]
    result = run("revoke", damaged)
    assert result.exit_code == 5
    assert damaged not in result.stderr
    assert "There is no such token" in result.stderr


def test_a_database_that_can_t_be_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FORGE_DATABASE_URL", f"postgresql://me:hush@/db?host={tmp_path}/nowhere")
    result = run("list")
    assert result.exit_code == 4
    assert "The database can't be asked" in result.stderr
    assert "hush" not in result.stderr


def test_a_wrong_setting_is_told() -> None:
    result = CliRunner().invoke(app, ["token", "list"], env={"FORGE_DATABASE_URL": "mysql://me:hush@x"})
    assert result.exit_code == 2
    assert "FORGE_DATABASE_URL must start with" in result.stderr
    assert "hush" not in result.stderr
