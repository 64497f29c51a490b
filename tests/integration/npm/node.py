"""Node with the npm packages of package.json, which are installed once into pytest's cache."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PACKAGES = HERE / "package.json"
INSTALL_LIMIT_S = 240


def demand_node() -> None:
    """Skips the test where node or npm is missing; on CI, which has to run it, fails it."""
    missing = [program for program in ("node", "npm") if shutil.which(program) is None]
    if not missing:
        return
    sentence = f"{' and '.join(missing)} not found: Node 20 or newer runs this test"
    if os.environ.get("CI") == "true":
        pytest.fail(sentence)
    pytest.skip(sentence)


def installed(cache: pytest.Cache) -> Path:
    """A directory whose node_modules holds what package.json asks for."""
    demand_node()
    place = cache.mkdir("npm")
    ready = place / hashlib.sha256(PACKAGES.read_bytes()).hexdigest()[:16]
    if not ready.exists():
        # Beside it and then renamed, so that what is there is whole whatever ends this.
        half = place / f"{ready.name}.{os.getpid()}"
        _install(half)
        try:
            half.rename(ready)
        except OSError:  # another run was faster
            assert ready.exists()
            shutil.rmtree(half)
    return ready


def _install(place: Path) -> None:
    place.mkdir()
    shutil.copy(PACKAGES, place)
    command = ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False)
    if done.returncode != 0:
        shutil.rmtree(place)
        pytest.fail(f"npm install failed: {done.stderr.strip()}", pytrace=False)


def with_modules(place: Path, modules: Path, *files: Path) -> Path:
    """`place` with copies of `files`, which find the packages there."""
    place.mkdir(parents=True, exist_ok=True)
    (place / "node_modules").symlink_to(modules / "node_modules")
    shutil.copy(PACKAGES, place)
    for file in files:
        shutil.copy(file, place)
    return place
