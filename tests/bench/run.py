"""`make bench`: packing, and the closed loop where a cluster is set up; `make bench ARGS=gateway`: the gateway and its peers;
`make bench ARGS=loop`: how long its event loop is held; `make bench ARGS=observer`: what it costs to observe many jobs."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import packing


def main() -> None:
    if sys.argv[1:2] == ["gateway"]:
        from gateway import bench

        bench.main(sys.argv[2:])
        return
    if sys.argv[1:2] == ["observer"]:
        import observer

        observer.main()
        return
    if sys.argv[1:2] == ["loop"]:
        import loop

        loop.main()
        return
    packing.main()
    if os.environ.get("FORGE_K8S_API_SERVER"):
        import closed_loop

        closed_loop.main()
    else:
        print("closed loop: skipped, as FORGE_K8S_API_SERVER is not set")


if __name__ == "__main__":
    main()
