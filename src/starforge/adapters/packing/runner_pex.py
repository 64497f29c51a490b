"""Builds runner.pex, the one file that starts a job in any image that has a Python.

pex makes the same bytes from the same sources wherever it runs (facts: 1980 dates, sorted, no compiled files). Without
compression they don't depend on the zlib at hand either, and the first start in a Pod is a second quicker.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from starforge.domain.errors import Defect

PREBUILT = Path(__file__).with_name("runner.pex")
BUILD_TIMEOUT_S = 180
STARFORGE_SOURCE = "starforge_module.py"
_FLAGS = (
    "--entry-point",
    "runner",
    "--python-shebang",
    "/usr/bin/env python3",
    "--no-compile",
    "--no-compress",
    "--no-pypi",
)


class RunnerNotBuilt(Defect):
    """pex failed, or took too long; the message has the end of what it said."""


def starforge_module() -> bytes:
    """The source of the `starforge.py` that goes into every Capsule."""
    return _sources_folder().joinpath(STARFORGE_SOURCE).read_bytes()


def runner_pex(cache: Path) -> Path:
    """The runner: the one built with the release if there is one, else from `cache`, built there when it is new."""
    return PREBUILT if PREBUILT.exists() else build_runner_pex(_sources_folder(), cache)


def build_runner_pex(sources: Path, cache: Path) -> Path:
    """`runner-<digest of the sources and of pex>.pex` in `cache`; several processes may build it at once."""
    found = _source_files(sources)
    built = cache / f"runner-{_digest(found)}.pex"
    if built.exists():
        return built
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".runner-") as scratch:
        fresh = _build(found, Path(scratch))
        # Who comes second replaces equal bytes by equal bytes.
        fresh.replace(built)
    return built


def _build(found: dict[str, bytes], scratch: Path) -> Path:
    package = scratch / "sources" / "runner"
    package.mkdir(parents=True)
    for name, content in found.items():
        (package / name).write_bytes(content)
        (package / name).chmod(0o644)
    output = scratch / "runner.pex"
    command = [sys.executable, "-m", "pex", "-D", str(package.parent), *_FLAGS, "-o", str(output)]
    try:
        done = subprocess.run(
            command,
            env=_environment(scratch),
            cwd=scratch,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RunnerNotBuilt(f"pex did not build the runner within {BUILD_TIMEOUT_S} seconds; try again.") from error
    if done.returncode or not output.exists():
        raise RunnerNotBuilt(f"pex could not build the runner: {done.stderr.decode(errors='replace')[-2000:]}")
    output.chmod(0o644)
    return output


def _environment(scratch: Path) -> dict[str, str]:
    """Ours without what changes a build: settings of pex and of Python, and pex's cache in the user's home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PEX", "PYTHON", "_PEX"))}
    return kept | {"PEX_ROOT": str(scratch / "pex_root")}


def _sources_folder() -> Path:
    return Path(str(files("starforge"))) / "runner"


def _source_files(sources: Path) -> dict[str, bytes]:
    """Only the runner's modules: pex takes whatever lies in the folder."""
    return {path.name: path.read_bytes() for path in sorted(sources.glob("*.py")) if path.name != STARFORGE_SOURCE}


def _digest(found: dict[str, bytes]) -> str:
    digest = hashlib.sha256(f"pex {version('pex')} {_FLAGS}".encode())
    for name, content in found.items():
        digest.update(f"\n{name} {hashlib.sha256(content).hexdigest()}".encode())
    return digest.hexdigest()[:32]


def main() -> None:
    """Builds the runner of a release, beside this file."""
    with tempfile.TemporaryDirectory() as cache:
        shutil.copyfile(build_runner_pex(_sources_folder(), Path(cache)), PREBUILT)


if __name__ == "__main__":
    main()
