"""The local fleet: real Ray on this machine, and Capsules as the packer makes them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from starforge.adapters.local.fleet import LocalFleet
from starforge.adapters.packing.packer import CapsulePacker
from starforge.domain.capsule import InlineFile
from starforge.domain.jobspec import jobspec
from starforge.domain.names import RunKey, job_id, run_name
from starforge.domain.ports import LaunchOrder, Signed
from starforge.domain.spec import Deadlines, FleetDefaults, PoolDraft, SpecDraft
from starforge.domain.spec_rules import freeze
from tests.contract.fleet.plug import Code, FleetUnderTest

DEFAULTS = FleetDefaults("local", None, 1, "1Gi", "100Mi", Deadlines(0, 1800, 0), 10, has_images=False)
_POOLS = (PoolDraft("train", "h200", 1, 1), PoolDraft("eval", "b200", 1, 1))
_LINES = "import time\nfor number in range(12):\n    print('line', number, flush=True)\n    time.sleep(0.1)\n"
_CODE = {
    Code.SUCCEEDS: _LINES,
    Code.FAILS: f"{_LINES}import sys\nsys.exit(3)\n",
    Code.RUNS_ON: "import signal\nprint('waits', flush=True)\nsignal.pause()\n",
}


@contextmanager
def local(folder: Path) -> Iterator[FleetUnderTest]:
    fleet = LocalFleet(folder / "runs", gpus={"h200": 8, "b200": 8}, defaults=DEFAULTS)
    orders: list[LaunchOrder] = []
    numbers = count(1)

    def order(code: Code) -> LaunchOrder:
        orders.append(_order(code, folder, next(numbers)))
        return orders[-1]

    yield FleetUnderTest(fleet, order, life_s=180)
    for one in orders:
        fleet.delete(one.run)


def _order(code: Code, folder: Path, number: int) -> LaunchOrder:
    run = RunKey(job_id(f"{os.getpid():010}{number:010}"), 1)
    spec = freeze(SpecDraft("contract", ("python3", "train.py"), _POOLS), DEFAULTS)
    packer, out = CapsulePacker(folder.parent / "runner"), folder / f"packed-{number}"
    out.mkdir()
    packed = packer.pack_files([InlineFile("train.py", _CODE[code])], out)
    capsule = packer.build_capsule(packed, jobspec(spec), out)
    until = datetime.now(UTC) + timedelta(days=1)
    return LaunchOrder(
        run=run,
        name=run_name(spec.name, run),
        spec=spec,
        capsule=Signed("GET", capsule.archive.as_uri(), (), until),
        capsule_digest=capsule.digest,
        transport_sha256=capsule.transport_sha256,
        claim=Signed("PUT", (out / "claim").as_uri(), (("If-None-Match", "*"),), until),
        claim_until=None,
        nonce=f"nonce-{number}",
    )
