"""Every fault that is tried, in the order of the table."""

from collections.abc import Sequence

from loop.jobs import pool
from tests.e2e.faults import around, beneath
from tests.e2e.faults.fault import Fault, Until, When, Work, nothing
from tests.e2e.faults.judging import SUCCEEDED, ended
from tests.e2e.faults.registry import MISSING_IMAGE

GOES_ON = (SUCCEEDED,)
LOST_STORE = (SUCCEEDED, ended("FAILED", "OBJECT_STORE_UNAVAILABLE"))
A_CERTIFICATE = ("pki/ca.crt", "pki/server.crt", "pki/server.key")
CONTROL = "none, to compare with"
KILLED_MINUTES, KILLED_JOBS = 15, 20
KILLED_SHORT_S, KILLED_SHORT_JOBS = 180, 4


def works(count: int = 1, seconds: float = 20) -> tuple[Work, ...]:
    """Jobs that nothing must keep from ending well, on both series in turn."""
    return tuple(Work(GOES_ON, series=("h200", "b200")[number % 2], seconds=seconds) for number in range(count))


def one_by_one(count: int) -> tuple[Work, ...]:
    """Jobs that each take all of node-b, so that they start in turn: several starts of Ray are much for two cores."""
    whole = {"pools": [pool("train", "b200", gpus=around.GPUS_OF_NODE_B)]}
    return (Work(GOES_ON, series="b200", spec=whole),) * count


def stores_and_processes() -> Sequence[Fault]:
    """What StarForge itself stands on; any fleet will do."""
    codes = frozenset({"OBJECT_STORE_UNAVAILABLE"})
    return [
        Fault(
            "Redis killed", "Redis", When.RUNNING, beneath.redis_dies, beneath.redis_comes_back, works(2),
            lasts_s=15, sample=True, needs_cluster=False,
        ),
        Fault(
            "Redis down at submit", "Redis", When.SUBMIT, beneath.redis_dies, beneath.redis_comes_back, works(2),
            lasts_s=20, needs_cluster=False,
        ),
        Fault(
            "Redis frozen", "Redis", When.RUNNING, beneath.redis_freezes, beneath.redis_thaws, works(2),
            lasts_s=30, needs_cluster=False,
        ),
        Fault(
            "Redis emptied", "Redis", When.PENDING, beneath.redis_is_emptied, nothing, works(2), lasts_s=0,
            needs_cluster=False,
        ),
        Fault(
            "Postgres restarted", "database", When.RUNNING, beneath.postgres_dies, beneath.postgres_comes_back,
            works(2), lasts_s=5, sample=True, needs_cluster=False,
        ),
        Fault(
            "object store down at submit", "object store", When.SUBMIT, beneath.store_dies, beneath.store_comes_back,
            works(2), shows=codes, lasts_s=20, needs_cluster=False,
        ),
        Fault(
            "object store down at launch", "object store", When.PENDING, beneath.store_dies, beneath.store_comes_back,
            (Work(LOST_STORE), Work(LOST_STORE, series="b200")), lasts_s=20, needs_cluster=False,
        ),
        Fault(
            "object store down at archive", "object store", When.RUNNING,
            beneath.near_the_end(beneath.store_dies), beneath.store_comes_back, works(2), lasts_s=30, short_s=30,
            sample=True, needs_cluster=False,
        ),
        Fault(
            "all processes of ours down for a minute", "processes of ours", When.RUNNING, beneath.ours_are_all_gone,
            beneath.ours_are_back, works(2), lasts_s=60, needs_cluster=False,
        ),
        Fault(
            "processes of ours killed, one every few seconds", "processes of ours", When.SUBMIT,
            beneath.ours_are_killed, beneath.ours_rest, one_by_one(KILLED_JOBS),
            lasts_s=KILLED_MINUTES * 60, short_s=KILLED_SHORT_S, short_works=KILLED_SHORT_JOBS, rounds=True,
            limit_s=1500, sample=True, needs_cluster=False,
        ),
    ]  # fmt: skip


def control_plane() -> Sequence[Fault]:
    """Kubernetes, the operator, and what we are allowed."""
    away = frozenset({"API_UNAVAILABLE"})
    absent = ended("FAILED", "OPERATOR_ABSENT", "PRERUNNING_DEADLINE")
    soon = {"deadlines": {"preRunningSeconds": 60, "activeSeconds": 600}}
    dies, comes_back = around.dies("apiserver"), around.comes_back("apiserver")
    a_process = ("pid/apiserver", "command/apiserver")
    return [
        Fault(
            "API server down 60 s", "control plane", When.RUNNING, dies, comes_back, works(2), away,
            lasts_s=60, short_s=25, strikes_at=1, sample=True, needs=a_process,
        ),
        Fault(
            "API server down 60 s at submit", "control plane", When.SUBMIT, dies, comes_back, works(2), away,
            lasts_s=60, needs=a_process,
        ),
        Fault(
            "API server down 60 s at the end", "control plane", When.FINISHING, dies, comes_back, works(2),
            lasts_s=60, needs=a_process,
        ),
        Fault(
            "etcd killed", "control plane", When.RUNNING, around.dies("etcd"), around.comes_back("etcd"), works(2),
            lasts_s=15, needs=("pid/etcd", "command/etcd"),
        ),
        Fault(
            "operator down for the whole start", "operator", When.SUBMIT, around.operator_leaves,
            around.operator_returns, (Work((absent,), spec=soon),), frozenset({"OPERATOR_ABSENT"}), until=Until.ENDED,
        ),
        Fault(
            "operator down at the start, and back", "operator", When.SUBMIT, around.operator_leaves,
            around.operator_returns, works(2), frozenset({"OPERATOR_ABSENT"}), until=Until.TOLD,
        ),
        Fault(
            "operator down during the run", "operator", When.RUNNING, around.operator_leaves, around.operator_returns,
            works(2), lasts_s=45, short_s=30, sample=True,
        ),
        Fault(
            "Events expired (EVENT_TTL)", "Events", When.SUBMIT, around.events_live_shortly, around.events_expire,
            (Work(GOES_ON, series="b200"),), frozenset({"UNSCHEDULABLE"}), until=Until.TOLD, sample=True,
            needs=a_process,
        ),
        Fault(
            "token revoked and replaced", "token", When.RUNNING, around.token_is_revoked, around.token_is_replaced,
            works(2), frozenset({"PERMISSION", "API_UNAVAILABLE", "TEARDOWN_BLOCKED"}), lasts_s=45, short_s=30,
            until=Until.TOLD, strikes_at=1, sample=True,
        ),
        Fault(
            "RayJob deleted by hand", "deletion", When.RUNNING, around.rayjob_is_deleted, nothing,
            (Work((ended("FAILED", "DELETED_OUTSIDE"),), seconds=60), *works(1)), frozenset({"DELETED_OUTSIDE"}),
            strikes_at=1, sample=True,
        ),
        Fault(
            "namespace deleted", "deletion", When.RUNNING, around.namespace_is_deleted, around.namespace_is_made_again,
            (Work((ended("FAILED", "DELETED_OUTSIDE"),), seconds=90, may_miss=True),), frozenset({"DELETED_OUTSIDE"}),
            lasts_s=0,
        ),
    ]  # fmt: skip


def nodes_and_pods() -> Sequence[Fault]:
    """What a job runs on."""
    survives = (SUCCEEDED, ended("FAILED", "NODE_LOST", "HEAD_LOST"))
    head_lost, out_of_memory = ended("FAILED", "HEAD_LOST"), ended("FAILED", "OOM_KILLED")
    a_kubelet = ("pid/kubelet-node-b", "command/kubelet-node-b")
    worker_lost = (SUCCEEDED, ended("FAILED", "EVICTED"))
    return [
        Fault(
            "kubelet of node-b killed", "node", When.RUNNING, around.dies("kubelet-node-b"), around.kubelet_comes_back,
            (Work(survives, series="b200", seconds=30), *works(1)), lasts_s=90, strikes_at=1,
            needs=a_kubelet,
        ),
        Fault(
            "node-b taken away", "node", When.RUNNING, around.node_is_lost, around.node_returns,
            (Work((ended("FAILED", "NODE_LOST"),), series="b200", seconds=180, may_miss=True), *works(1)),
            frozenset({"NODE_LOST"}), until=Until.TOLD, strikes_at=1, limit_s=240, needs=a_kubelet,
        ),
        Fault(
            "node cordoned and drained", "node", When.RUNNING, around.node_is_drained, around.node_is_uncordoned,
            (Work((ended("FAILED", "EVICTED"),), series="b200", seconds=60), *works(1)), frozenset({"EVICTED"}),
            strikes_at=1, sample=True,
        ),
        Fault(
            "head Pod deleted", "Pod", When.RUNNING, around.pod_is_deleted("head"), nothing,
            (Work((head_lost,), seconds=60), *works(1)[:1]), frozenset({"HEAD_LOST"}), strikes_at=1, sample=True,
        ),
        Fault(
            "worker Pod deleted", "Pod", When.RUNNING, around.pod_is_deleted("worker"), nothing,
            (Work(worker_lost, worker=True, seconds=30),),
        ),
        Fault(
            "Pod OOMKilled", "memory", When.RUNNING, around.memory_is_full, nothing,
            (Work((out_of_memory,), seconds=5, env={"FILL_MEMORY": "1"}),), frozenset({"OOM_KILLED"}), sample=True,
        ),
    ]  # fmt: skip


def admission() -> Sequence[Fault]:
    """What keeps a job from being made."""
    missing = {"image": MISSING_IMAGE}
    denied = frozenset({"ADMISSION_DENIED"})
    late = frozenset({"ADMISSION_DENIED", "API_UNAVAILABLE", "LAUNCH_FAILED"})
    refused = (Work((ended("FAILED", "ADMISSION_DENIED"),)),)
    of_rayjobs, of_pods = ("ray.io", "v1", "rayjobs"), ("", "v1", "pods")
    return [
        Fault(
            "image missing", "image", When.SUBMIT, around.registry_has_nothing, around.registry_goes,
            (Work((ended("FAILED", "IMAGE_PULL"),), spec=missing),), frozenset({"IMAGE_PULL"}), until=Until.ENDED,
            sample=True, needs=("pid/containerd-node-a",),
        ),
        Fault(
            "ResourceQuota exceeded", "quota", When.SUBMIT, around.quota_is_full, around.quota_is_lifted, works(1),
            frozenset({"QUOTA"}), until=Until.TOLD, sample=True,
        ),
        Fault(
            "webhook denies RayJobs", "webhook", When.SUBMIT, around.webhook_stands(*of_rayjobs), around.webhook_falls,
            refused, denied, until=Until.ENDED, sample=True, limit_s=180, needs=A_CERTIFICATE,
        ),
        Fault(
            "webhook denies Pods", "webhook", When.SUBMIT, around.webhook_stands(*of_pods), around.webhook_falls,
            refused, denied, until=Until.ENDED, limit_s=180, needs=A_CERTIFICATE,
        ),
        Fault(
            "webhook times out", "webhook", When.SUBMIT, around.webhook_stands(*of_rayjobs, silent=True),
            around.webhook_falls, works(1), late, until=Until.TOLD, lasts_s=20, limit_s=240, needs=A_CERTIFICATE,
        ),
    ]  # fmt: skip


def catalogue() -> Sequence[Fault]:
    control = Fault(
        CONTROL, "none", When.RUNNING, nothing, nothing, works(2), lasts_s=0, sample=True, needs_cluster=False
    )
    return [control, *control_plane(), *nodes_and_pods(), *admission(), *stores_and_processes()]
