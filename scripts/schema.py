"""Writes schema.graphql from the code, or with --check says whether it is the one committed."""

import difflib
import sys
from pathlib import Path

from starforge.api.schema import print_schema

PATH = Path(__file__).parent.parent / "schema.graphql"


def main() -> int:
    new = print_schema()
    if "--check" not in sys.argv[1:]:
        PATH.write_text(new)
        return 0
    old = PATH.read_text()
    if old == new:
        return 0
    diff = difflib.unified_diff(old.splitlines(), new.splitlines(), "schema.graphql", "the code", lineterm="", n=1)
    print("\n".join(diff))
    print("schema.graphql is not what the code prints: run `make schema` and look at the difference.")
    return 1


if __name__ == "__main__":
    sys.exit(main())
