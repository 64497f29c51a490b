"""Writes the version of every dependency into `[tool.uv] constraint-dependencies` of pyproject.toml.

A uv.lock would name the package host that it was made with, so the pins stand here, by name and version alone.
"""

import re
import subprocess
import sys
from pathlib import Path

PATH = Path(__file__).parent.parent / "pyproject.toml"
EXTRAS = re.compile(r"\[.*?\]")


def pins(uv: str) -> list[str]:
    """`name==version` of everything that a fresh resolution takes, in name order."""
    text = PATH.read_text()
    PATH.write_text(_with(text, []))
    command = [uv, "export", "--all-extras", "--all-groups", "--no-hashes", "--no-emit-project", "--no-annotate"]
    try:
        export = subprocess.run(
            [*command, "--no-header", "--quiet", "--upgrade"], check=True, capture_output=True, text=True, timeout=600
        )
    finally:
        PATH.write_text(text)
    lines = (line.split(" ;")[0].strip() for line in export.stdout.splitlines())
    return sorted({line for line in lines if re.fullmatch(r"[A-Za-z0-9._\[\],-]+==\S+", line)})


def _with(text: str, found: list[str]) -> str:
    rows = "".join(f'    "{EXTRAS.sub("", pin)}",\n' for pin in found)
    new = f"constraint-dependencies = [\n{rows}]" if found else "constraint-dependencies = []"
    return re.sub(r"constraint-dependencies = \[[^\]]*\]", new, text)


def main() -> None:
    found = pins(sys.argv[1])
    PATH.write_text(_with(PATH.read_text(), found))
    print(f"{len(found)} versions pinned in pyproject.toml")


if __name__ == "__main__":
    main()
