"""Fails as real code does: the data is not where it should be, which is told by a traceback and exit code 3."""

import sys
import traceback

import starforge

EXIT_NO_DATA = 3


class DatasetMissing(Exception):
    """The training data is not there."""


def load(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.readlines()
    except FileNotFoundError as error:
        raise DatasetMissing(f"no data at {path}") from error


def main() -> int:
    starforge.progress(0, 10)
    try:
        rows = load("data/train.csv")
    except DatasetMissing:
        traceback.print_exc()
        return EXIT_NO_DATA
    print(f"{len(rows)} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
