"""Kubernetes' JSON as what the domain sees."""

from datetime import UTC, datetime

import pytest

from starforge.adapters.kube.labels import belongs_by_name, run_of
from starforge.adapters.kube.views.containers import containers
from starforge.adapters.kube.views.events import count_of, event_seen
from starforge.adapters.kube.views.pods import assign_machines, pod_views
from starforge.adapters.kube.views.runs import newest, run_seen
from starforge.adapters.kube.views.times import parse_time
from starforge.domain.names import JobId, RunKey
from starforge.domain.observation import ContainerRole, ContainerState, PodPhase, PodRole, RunPhase
from tests.unit.kube.kube_objects import event, pod, rayjob, recorded
from tests.unit.kube.kube_orders import AT, RUN

RECORDED_RUN = RunKey(JobId("job-cf80e14174e7417496e8"), 1)


def test_recorded_pods() -> None:
    pods = recorded("pods")
    head, worker = pod_views(pods, assign_machines(pods, {}), AT)
    assert (head.role, head.pool, head.machine, head.gpus, head.ready) == (PodRole.HEAD, "train", 0, 1, True)
    assert (worker.role, worker.pool, worker.machine, worker.ready) == (PodRole.WORKER, "second", 0, False)
    assert (head.phase, head.node_name, worker.node_name) == (PodPhase.RUNNING, "node-a", "node-b")
    assert head.scheduled_at == datetime(2026, 11, 29, 20, 12, 27, tzinfo=UTC)
    assert [(each.name, each.role, each.state) for each in worker.containers] == [
        ("wait-gcs-ready", ContainerRole.INIT, ContainerState.TERMINATED),
        ("ray-worker", ContainerRole.MAIN, ContainerState.RUNNING),
    ]
    assert worker.containers[0].termination is not None
    assert worker.containers[0].termination.exit_code == 0
    assert {each.type: each.status for each in worker.conditions}["Ready"] is False
    assert all(run_of(each) == RECORDED_RUN for each in pods)


def test_a_recorded_run_waits_while_it_initializes() -> None:
    seen = run_seen(RECORDED_RUN, recorded("rayjob"), recorded("pods"), {}, AT)
    assert seen.phase is RunPhase.WAITING
    assert seen.uid == "3412b69e-2795-4281-9c0f-e78e948c6e3e"
    assert seen.rayjob is not None
    assert (seen.rayjob.job_status, seen.rayjob.deployment_status) == (None, "Initializing")
    assert (seen.rayjob.ray_cluster, seen.rayjob.submission_mode) == ("try-finish-2bdf38793e-r4rph", "HTTPMode")


def test_recorded_events_of_both_styles() -> None:
    by_reason = {each["reason"]: event_seen(RUN, each) for each in recorded("events")}
    new, old, often = by_reason["Scheduled"], by_reason["FailedMount"], by_reason["Unhealthy"]
    assert (new.count, new.reported_by, new.warning) == (1, "default-scheduler", False)
    assert new.first_at == new.last_at == datetime(2026, 11, 29, 20, 6, 29, 261855, tzinfo=UTC)
    assert (old.count, old.reported_by, old.warning, old.object.kind) == (1, "kubelet", True, "Pod")
    assert often.count == 10
    assert often.first_at < often.last_at


def test_a_series_counts_and_tells_its_last_time() -> None:
    found = event("x") | {
        "count": 0,
        "eventTime": "2026-11-29T12:00:00.000001Z",
        "series": {"count": 7, "lastObservedTime": "2026-11-29T12:05:00.5Z"},
    }
    assert count_of(found) == 7
    assert event_seen(RUN, found).last_at == datetime(2026, 11, 29, 12, 5, 0, 500000, tzinfo=UTC)


def test_secrets_are_removed_where_they_enter() -> None:
    url = "403 for https://s3/a.zip?X-Amz-Signature=dead"
    job = rayjob(job="FAILED", deployment="Failed")
    job["status"]["message"] = url + "x" * 30_000
    broken = pod("a")
    broken["status"]["containerStatuses"][0]["state"] = {"terminated": {"exitCode": 1, "message": url}}
    seen = run_seen(RUN, job, [broken], {}, AT)
    assert "dead" not in repr(seen)
    assert seen.phase is RunPhase.FAILED
    assert len(seen.message or "") <= 20_000
    assert "dead" not in repr(event_seen(RUN, event("a") | {"message": url}))


def test_a_stopped_job_is_complete_and_no_success() -> None:
    assert run_seen(RUN, rayjob(job="STOPPED", deployment="Complete"), [], {}, AT).phase is RunPhase.STOPPED
    assert run_seen(RUN, None, [], {}, AT).phase is RunPhase.ABSENT


def test_the_newest_rayjob_counts() -> None:
    old, new = rayjob(uid="old"), rayjob(uid="new")
    new["metadata"]["creationTimestamp"] = "2026-11-29T13:00:00Z"
    assert newest([new, old]) is new
    assert newest([]) is None


def test_the_time_of_a_deletion_is_when_it_was_asked_for() -> None:
    going = pod("a")
    going["metadata"] |= {"deletionTimestamp": "2026-11-29T12:00:30Z", "deletionGracePeriodSeconds": 30}
    (view,) = pod_views([going], {}, AT)
    assert view.terminating
    assert view.deletion_requested_at == AT


def test_an_out_of_memory_kill_and_a_container_without_status() -> None:
    killed = pod("a")
    ended = {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-11-29T12:10:00Z"}
    killed["status"] = {"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": ended}}]}
    (view,) = pod_views([killed], {}, AT)
    assert view.containers[0].termination is not None
    assert view.containers[0].termination.oom_killed
    assert view.finished_at == datetime(2026, 11, 29, 12, 10, tzinfo=UTC)
    del killed["status"]
    assert [(each.state, each.image) for each in containers(killed)] == [(ContainerState.WAITING, "image")]


def test_machines_are_numbered_by_age_after_the_head_and_keep_their_number() -> None:
    head = pod("head", node_type="head")
    one, two = (pod(uid, created=f"2026-11-29T12:00:0{uid}Z", first=1) for uid in "12")
    numbers = assign_machines([two, one, head], {})
    assert numbers == {"head": 0, "1": 1, "2": 2}
    new = pod("9", created="2026-11-29T12:00:09Z", first=1)
    assert assign_machines([head, two, new], numbers) == {"head": 0, "2": 2, "9": 1}
    assert assign_machines([two, new], {}) == {"2": 1, "9": 2}, "the head's number stays free while it is gone"


def test_a_pod_without_a_pool_has_no_number() -> None:
    submitter = pod("s")
    submitter["metadata"]["labels"] = {
        each: text for each, text in submitter["metadata"]["labels"].items() if "ray" not in each
    }
    del submitter["metadata"]["labels"]["starforge.io/pool"]
    (view,) = pod_views([submitter], assign_machines([submitter], {}), AT)
    assert (view.role, view.pool, view.machine) == (PodRole.SUBMITTER, None, None)


@pytest.mark.parametrize("text", ["2026-11-29T12:00:00Z", "2026-11-29T13:00:00.000000000+01:00"])
def test_times(text: str) -> None:
    assert parse_time(text) == AT
    assert parse_time(None) is None


def test_what_kuberay_makes_is_found_by_the_names_of_its_owners() -> None:
    from starforge.domain.names import run_name

    name = run_name("Try it", RUN)

    def owned(owner: str) -> dict[str, object]:
        return {"metadata": {"name": "x", "ownerReferences": [{"name": owner}]}}

    assert belongs_by_name(RUN, owned(name))
    assert belongs_by_name(RUN, owned(f"{name}-ab1de"))
    assert belongs_by_name(RUN, {"metadata": {"name": name}})
    assert not belongs_by_name(RUN, owned(run_name("Try it", RunKey(RUN.job, 2))))
    assert not belongs_by_name(RUN, owned(f"{name}-ab1de-more"))
