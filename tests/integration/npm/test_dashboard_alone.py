"""The guide's dashboard.js by itself: what it does with each step and each end of a subscription."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.integration.npm.node import HERE, PACKAGES, installed, with_modules

DASHBOARD = HERE.parents[2] / "docs" / "guide" / "dashboard"
LIMIT_S = 120


@pytest.fixture(scope="module")
def modules(request: pytest.FixtureRequest) -> Path:
    assert request.config.cache
    return installed(request.config.cache)


def test_its_own_tests_pass(modules: Path, tmp_path: Path) -> None:
    place = with_modules(tmp_path / "page", modules, HERE / "dashboard.test.mjs", DASHBOARD / "dashboard.js")
    command = ["node", "--test", "--test-reporter=tap", "dashboard.test.mjs"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout
    assert "# pass 0\n" not in done.stdout


def test_every_script_of_the_guide_is_javascript(modules: Path) -> None:
    for script in sorted([*DASHBOARD.glob("*.js"), *DASHBOARD.glob("*.mjs")]):
        command = ["node", "--check", str(script)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
        assert done.returncode == 0, done.stderr


def test_the_guide_uses_the_clients_that_are_tested() -> None:
    guide, tested = (json.loads(file.read_text())["dependencies"] for file in (DASHBOARD / "package.json", PACKAGES))
    assert guide.items() <= tested.items()


def test_the_import_map_names_files_that_are_there(modules: Path) -> None:
    page = (DASHBOARD / "index.html").read_text()
    text = page.split('<script type="importmap">')[1].split("</script>")[0]
    for place in json.loads(text)["imports"].values():
        assert (modules / place).is_file(), place
