"""Writes schema.graphql and docs/reference from the code.

With --check says whether they are what is committed, and whether a change breaks clients that nobody noted in
schema-changes.md; with --release VERSION makes the schema of the code the one that changes are compared with, and what
clients send that it does not have the most that may be missing.
"""

import argparse
import sys
from pathlib import Path

from reference import pages
from schema_changes import NOTES, release, unnoted
from schema_files import REFERENCE, differences, write

from starforge.api.schema import print_schema

ROOT = Path(__file__).parent.parent
PRINTED = "schema.graphql"
RELEASED = f"{REFERENCE}/released.graphql"
PRUNED, PRUNED_RELEASED = "tests/data/pruned.txt", "tests/data/pruned.released.txt"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true")
    what.add_argument("--release", metavar="VERSION")
    given = parser.parse_args()
    schema = print_schema()
    written = {PRINTED: schema} | {f"{REFERENCE}/{name}": page for name, page in pages(schema).items()}
    if given.check:
        notes, released = (ROOT / NOTES).read_text(), (ROOT / RELEASED).read_text()
        found = differences(ROOT, written) + unnoted(notes, released, schema)
        print("\n".join(found), end="\n" if found else "")
        return 1 if found else 0
    if given.release:
        written |= {RELEASED: schema, NOTES: release((ROOT / NOTES).read_text(), given.release)}
        written[PRUNED_RELEASED] = (ROOT / PRUNED).read_text()
    write(ROOT, written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
