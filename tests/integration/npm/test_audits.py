"""The server audits of the npm package graphql-http, all of them, on a gateway as `starforge dev` starts it."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.npm.node import HERE, installed, with_modules
from tests.integration.test_dev import dev

AUDITS_LIMIT_S = 120
AUDITS_AT_LEAST = 61
"""So many are in the version that package.json names."""


@pytest.fixture(scope="module")
def modules(request: pytest.FixtureRequest) -> Path:
    assert request.config.cache
    return installed(request.config.cache)


@pytest.fixture(scope="module")
def gateway(modules: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with dev(tmp_path_factory.mktemp("dev"), "--simulate", "0") as (_, url):
        yield url


def test_all_server_audits_pass(
    gateway: str, modules: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = with_modules(tmp_path / "audits", modules, HERE / "audits.mjs")
    command = ["node", "audits.mjs", gateway]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=AUDITS_LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    failed = [result for result in results if result["status"] != "ok"]
    with capsys.disabled():
        sys.stdout.write(f"\ngraphql-http audits: {len(results) - len(failed)} of {len(results)} passed\n")
    assert failed == []
    assert len(results) >= AUDITS_AT_LEAST
