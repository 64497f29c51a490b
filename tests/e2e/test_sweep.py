"""Strays and finalizers on a real cluster: what is nobody's goes, and what holds a removal is named."""

import os
import threading
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.fleet import KubeFleet
from starforge.adapters.kube.paths import Paths
from starforge.adapters.kube.rendering.rayjob import render_rayjob
from starforge.adapters.kube.settings import KubeConfig
from starforge.adapters.store import SqlStore, migrate
from starforge.domain.actions.sweep import Step, sweep
from starforge.domain.job import JobState
from starforge.domain.names import Digest, JobId, RunKey, installation_id, job_id, run_name
from starforge.domain.ports import LaunchOrder, Resume, Signed
from starforge.domain.spec_rules import freeze
from starforge.domain.teardown import STUCK, Teardown, TeardownState
from starforge.domain.timeline import TeardownChanged
from tests.e2e.conftest import Cluster
from tests.unit.actions.fakes import DEFAULTS
from tests.unit.actions.world import DRAFT, World

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]
FINALIZER = "example.com/foreign"
GONE_S = 120


@dataclass
class RayJobs:
    """Makes RayJobs that never get Pods, as an administrator: StarForge itself may not change a finalizer."""

    api: KubeApi
    config: KubeConfig
    made: dict[RunKey, str] = field(default_factory=dict)

    def make(self, run: RunKey, installation: str, *finalizers: str) -> None:
        order = _order(run, installation, self.config)
        body = render_rayjob(order, self.config, served=frozenset())
        body["spec"]["suspend"] = True
        body["metadata"]["finalizers"] = list(finalizers)
        self.api.post(Paths(self.config.namespace).rayjobs, body)
        self.made[run] = order.name

    def free(self, run: RunKey) -> None:
        """Take off every finalizer."""
        self.api.patch(f"{Paths(self.config.namespace).rayjobs}/{self.made[run]}", {"metadata": {"finalizers": None}})


def _order(run: RunKey, installation: str, config: KubeConfig) -> LaunchOrder:
    spec = freeze(replace(DRAFT, image=config.image), replace(DEFAULTS, fleet=config.fleet_name))
    nowhere = Signed("GET", "https://nowhere.example.com/a.zip", (), datetime.now(UTC))
    name = run_name(spec.name, run)
    return LaunchOrder(run, name, spec, nowhere, Digest("a"), "a", nowhere, None, "nonce", installation)


@pytest.fixture
def fleet(cluster: Cluster) -> Iterator[KubeFleet]:
    fleet = KubeFleet(cluster.config)
    yield fleet
    fleet.close()


@pytest.fixture
def rayjobs(cluster: Cluster, fleet: KubeFleet) -> Iterator[RayJobs]:
    path = os.environ.get("KUBECONFIG")
    if not path:
        missing = "KUBECONFIG names no administrator of the cluster"
        pytest.fail(missing) if os.environ.get("CI_CLUSTER") == "1" else pytest.skip(missing)
    api = KubeApi(KubeConfig(namespace=cluster.config.namespace, kubeconfig=path))
    rayjobs = RayJobs(api, cluster.config)
    yield rayjobs
    for run in rayjobs.made:
        if fleet.remaining(run):
            rayjobs.free(run)
            fleet.delete(run)
    api.close()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """An installation of its own, at the cluster's time."""
    url = f"sqlite:///{tmp_path}/store.db"
    migrate(url)
    store = SqlStore(url)
    world = World(tmp_path, store)
    world.clock.now = datetime.now(UTC)
    yield world
    store.close()


def until(fleet: KubeFleet, is_so: Callable[[], bool]) -> None:
    """Look whenever the watch tells something, which is once a second or more often."""
    stop, limit = threading.Event(), datetime.now(UTC) + timedelta(seconds=GONE_S)
    for _ in fleet.watch(lambda _run, _source: Resume(None), stop):
        if not stop.is_set() and is_so():
            stop.set()
        assert datetime.now(UTC) < limit, f"it was not so within {GONE_S} s"


def removal(world: World, job: JobId) -> Teardown:
    found = world.job(job).attempt.teardown
    assert found is not None
    return found


def test_a_stray_run_goes_and_that_of_another_installation_stays(
    world: World, fleet: KubeFleet, rayjobs: RayJobs
) -> None:
    us, them = (installation_id(uuid.uuid4().hex) for _ in range(2))
    ours, theirs = (RunKey(job_id(uuid.uuid4().hex), 1) for _ in range(2))
    ports = replace(world.ports, fleet=fleet)
    assert world.sql.installation(new=us) == us
    rayjobs.make(ours, us)
    rayjobs.make(theirs, them)
    assert list(sweep(ports)) == [], "it is too young"
    world.clock.forward(180)
    assert [(one.run, one.step) for one in sweep(ports)] == [(ours, Step.NOTE)]
    world.clock.forward(120)
    assert [(one.run, one.step) for one in sweep(ports, dry_run=True)] == [(ours, Step.REMOVE)]
    assert [left.deletion_requested_at for left in fleet.remaining(ours)] == [None]
    assert [(one.run, one.step) for one in sweep(ports)] == [(ours, Step.REMOVE)]
    until(fleet, lambda: not fleet.remaining(ours))
    assert [left.deletion_requested_at for left in fleet.remaining(theirs)] == [None]


def test_a_foreign_finalizer_blocks_a_removal_by_name_until_it_is_taken_off(
    world: World, fleet: KubeFleet, rayjobs: RayJobs
) -> None:
    job = world.finishing()
    run = world.run(job)
    world.ports = replace(world.ports, fleet=fleet)
    rayjobs.make(run, world.sql.installation(new=""), FINALIZER)
    world.settle(5)
    assert removal(world, job).state is TeardownState.DELETING
    assert list(sweep(world.ports)) == [], "its teardown is at it"
    world.clock.forward(STUCK.total_seconds() + 10)
    world.work()
    blocked = removal(world, job)
    assert blocked.state is TeardownState.BLOCKED
    assert blocked.reason is not None
    assert f"RayJob {rayjobs.made[run]} in namespace" in blocked.reason.message
    assert FINALIZER in blocked.reason.message
    assert "kubectl patch rayjob" in (blocked.reason.advice or "")
    rayjobs.free(run)
    until(fleet, lambda: not fleet.remaining(run))
    world.settle(61)
    assert world.job(job).state is JobState.SUCCEEDED
    assert removal(world, job).state is TeardownState.RELEASED
    details = [entry.detail for entry in world.entries(job)]
    told = [detail.teardown.state for detail in details if isinstance(detail, TeardownChanged)]
    assert told[-2:] == [TeardownState.BLOCKED, TeardownState.RELEASED]
    assert told.count(TeardownState.BLOCKED) == 1
