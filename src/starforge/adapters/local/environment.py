"""The environment of a run: what a container of a cluster would have, and nothing of the platform's own."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from starforge.adapters.local.rundir import RunOrder

MARKER = "STARFORGE_RUN"
PEX_FOLDER = ".pex"
# Everything else of this machine stays out, as settings of the platform and keys to its stores are among it.
PASSED_ON = (
    "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "LD_LIBRARY_PATH",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "no_proxy", "NVIDIA_VISIBLE_DEVICES", "CUDA_HOME", "OMP_NUM_THREADS",
)  # fmt: skip

_RAY = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_DEDUP_LOGS": "0",
    # Despite its name: with 0 Ray takes the loopback for this machine's address, in the head and in the driver.
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_STREAM_RUNTIME_ENV_LOG_TO_JOB_DRIVER_LOG": "1",
    "PYTHONUNBUFFERED": "1",
}


def marker(uid: str) -> str:
    """What every process of the run has in its environment."""
    return f"{MARKER}={uid}"


def node_environment(order: RunOrder, base: Mapping[str, str] = os.environ) -> dict[str, str]:
    """For the Ray node and so for every actor: this machine's, then the spec's, then what a run must have."""
    passed_on = {name: base[name] for name in PASSED_ON if name in base}
    path = os.pathsep.join([str(Path(sys.executable).parent), base.get("PATH", os.defpath)])
    return {**passed_on, "PATH": path, **_RAY, **order.env, MARKER: order.uid}


def runner_environment(
    order: RunOrder,
    *,
    address: str,
    code: Path,
    capsule: Path,
    attempt_file: Path,
    base: Mapping[str, str] = os.environ,
) -> dict[str, str]:
    """For the runner and the driver: `ray.init()` finds the node at `address`, and actors run in a copy of `code`."""
    node = node_environment(order, base)
    python_path = os.pathsep.join(part for part in (str(code), node.get("PYTHONPATH", "")) if part)
    runtime_env = {"working_dir": capsule.as_uri()}
    return {
        **node,
        "PYTHONPATH": python_path,
        "RAY_ADDRESS": address,
        "RAY_JOB_CONFIG_JSON_ENV_VAR": json.dumps({"runtime_env": runtime_env}),
        "STARFORGE_ATTEMPT_FILE": str(attempt_file),
        # pex unpacks the runner once into it; in the home directory it would outlive us.
        "PEX_ROOT": str(attempt_file.parent.with_name(PEX_FOLDER)),
    }
