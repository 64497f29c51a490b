"""The real cluster that the FORGE_* settings name; without one these tests are skipped, with CI_CLUSTER=1 they fail."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import pytest

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.errors import UNREACHABLE, short
from starforge.adapters.kube.paths import Paths
from starforge.adapters.kube.settings import KubeConfig


@dataclass(frozen=True)
class Cluster:
    """`ca_file` is the CA of the object store that speaks https."""

    config: KubeConfig
    ca_file: str | None


@cache
def find_cluster() -> Cluster | str:
    """The cluster, or why there is none."""
    server = os.environ.get("FORGE_K8S_API_SERVER")
    if not server:
        return "no cluster: FORGE_K8S_API_SERVER is not set"
    config = KubeConfig(
        namespace=os.environ.get("FORGE_K8S_NAMESPACE", "starforge"),
        api_server=server,
        token=os.environ.get("FORGE_K8S_TOKEN"),
        token_file=os.environ.get("FORGE_K8S_TOKEN_FILE"),
        ca_file=os.environ.get("FORGE_K8S_CA_FILE"),
        image=os.environ.get("FORGE_IMAGE_NEMO_RL"),
        ray_version=os.environ.get("FORGE_KUBERAY_RAY_VERSION", "2.55.1"),
        gpu_passthrough=os.environ.get("FORGE_K8S_GPU_PASSTHROUGH", "1") not in ("0", "false"),
        shm_size="512Mi",
    )
    return _reached(config) or Cluster(config, os.environ.get("FORGE_S3_CA_FILE"))


def _reached(config: KubeConfig) -> str | None:
    try:
        KubeApi(config).get(Paths(config.namespace).rayjobs, {"limit": 1})
    except UNREACHABLE as error:
        return f"no cluster: {config.api_server} does not answer as it should: {short(error)}"
    return None


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    found = find_cluster()
    if isinstance(found, Cluster):
        yield replace(found)
    elif os.environ.get("CI_CLUSTER") == "1":
        pytest.fail(found)
    else:
        pytest.skip(found)
