"""GraphQL subscription servers side by side: ours, and peers that serve the same subset of its schema.

From the root of the repository:

    make bench ARGS="gateway"                                   all of it, over an hour, on a machine that rests
    make bench ARGS="gateway --quick --only ours --scenario a"  a minute, to try something

or without make `python tests/bench/run.py gateway …`. `--only` and `--scenario` may be given several times,
`--subscribers` and `--seconds` change the sizes, `--keep` says where the servers' logs are left, `--nice -15` helps on a
machine that does other things as well (then look at the last column: what others took of the server's core).

Every scenario starts its server anew on core 0; the load generator (Go), the publisher and Redis share core 1. Go, node
with npm, and uv are needed for the peers, which are fetched and built under ~/.cache/starforge-bench at their first use.
A table goes to stdout, JSON to tests/bench/results/.
"""

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "bench")]

from gateway.ours import Site  # noqa: E402
from gateway.processes import before_others, stay_aside  # noqa: E402
from gateway.scenarios import FULL, QUICK, SCENARIOS, Row, Size  # noqa: E402
from gateway.sites import SITES  # noqa: E402
from gateway.tables import tables  # noqa: E402
from gateway.tools import build_loadgen  # noqa: E402

RESULTS = ROOT / "tests" / "bench" / "results"


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("bench gateway", description="GraphQL subscription servers side by side.")
    parser.add_argument("--quick", action="store_true", help="1,000 subscribers for 5 s")
    parser.add_argument("--only", action="append", choices=[*SITES], help="one server; may be given again")
    parser.add_argument("--scenario", action="append", choices=[*SCENARIOS], help="one scenario; may be given again")
    parser.add_argument("--subscribers", type=int, help="how many, in a and d")
    parser.add_argument("--seconds", type=float, help="how long is measured")
    parser.add_argument("--keep", type=Path, help="folder for logs and data, else they are removed")
    parser.add_argument("--nice", type=int, default=0, help="below 0: go before what else this machine does (root)")
    return parser.parse_args(given)


def size_of(options: argparse.Namespace) -> Size:
    size = QUICK if options.quick else FULL
    if options.subscribers:
        size = replace(size, subscribers=(options.subscribers,), with_mutations=options.subscribers)
    return replace(size, seconds=options.seconds) if options.seconds else size


@contextlib.contextmanager
def site_in_fresh_folder(name: str, keep: Path | None) -> Iterator[tuple[Site, Path]]:
    folder = Path(tempfile.mkdtemp(prefix=f"bench-{name}-", dir=keep))
    try:
        with SITES[name](folder) as site:
            yield site, folder
    finally:
        if keep is None:
            shutil.rmtree(folder, ignore_errors=True)


def rows(options: argparse.Namespace) -> Iterator[Row]:
    size = size_of(options)
    for scenario in options.scenario or SCENARIOS:
        for name in options.only or SITES:
            print(f"{time.strftime('%H:%M:%S')} {scenario}: {name}", file=sys.stderr, flush=True)
            try:
                yield from SCENARIOS[scenario](partial(site_in_fresh_folder, name, options.keep), size)
            except (RuntimeError, TimeoutError, OSError) as error:
                print(f"  {name} did not get through {scenario}: {error}", file=sys.stderr, flush=True)
                yield {"scenario": scenario, "server": name, "broke": str(error)}


def main(given: Sequence[str]) -> None:
    options = arguments(given)
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
    stay_aside()
    build_loadgen()
    found = []
    with before_others(options.nice):
        for row in rows(options):
            print(json.dumps(row), file=sys.stderr, flush=True)
            found.append(row)
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"gateway-{time.strftime('%Y%m%d-%H%M%S')}.json"
    path.write_text(json.dumps({"arguments": list(given), "rows": found}, indent=1) + "\n")
    print(tables(found))
    print(f"\n{path.relative_to(ROOT)}")


if __name__ == "__main__":
    main(sys.argv[1:])
