"""The attempt file and the command."""

import json
import os
from pathlib import Path

import pytest

from starforge.runner.attempt import Attempt, AttemptInvalid, ClaimTarget, read_attempt, read_command


def attempt_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "attempt.json").write_text(text)
    monkeypatch.setenv("STARFORGE_ATTEMPT_FILE", str(tmp_path / "attempt.json"))


def test_a_claim_by_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = {"url": "https://s3/x?sig=1", "headers": {"If-None-Match": "*"}, "ca_file": None}
    value = {"nonce": "n", "claim": claim, "claim_until": 9, "stream": "/proc/1/fd/1", "cancel_grace_s": 7}
    attempt_file(tmp_path, monkeypatch, json.dumps(value))
    target = ClaimTarget("https://s3/x?sig=1", {"If-None-Match": "*"}, None, None)
    assert read_attempt() == Attempt("n", target, 9.0, "/proc/1/fd/1", 7.0)
    assert "STARFORGE_ATTEMPT_FILE" not in os.environ


def test_a_claim_by_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt_file(tmp_path, monkeypatch, '{"nonce":"n","claim":{"path":"/x"},"claim_until":null,"stream":null}')
    assert read_attempt() == Attempt("n", ClaimTarget(path="/x"), None, None, 30.0)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"nonce":"n","claim":{}}', '{"nonce":"n","claim":{"url":"ftp://x/secret"}}']
)
def test_attempt_files_that_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    attempt_file(tmp_path, monkeypatch, text)
    with pytest.raises(AttemptInvalid) as raised:
        read_attempt()
    assert "attempt.json" in str(raised.value)
    assert "secret" not in str(raised.value)


def test_no_attempt_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STARFORGE_ATTEMPT_FILE", raising=False)
    with pytest.raises(AttemptInvalid, match="is not set"):
        read_attempt()


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".starforge").mkdir()
    for text in ("{", "{}", '{"command":[]}', '{"command":"python x"}', '{"command":[1]}'):
        (tmp_path / ".starforge/jobspec.json").write_text(text)
        with pytest.raises(AttemptInvalid, match=r"jobspec\.json"):
            read_command()
    (tmp_path / ".starforge/jobspec.json").write_text('{"command":["python","$(x) é"],"name":"a"}')
    assert read_command() == ["python", "$(x) é"]
