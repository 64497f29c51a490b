"""The cluster around the jobs: broken and mended, each as a coroutine over the scene."""

import asyncio
import json
from urllib.parse import urlsplit

from tests.e2e.faults.beneath import until_printed
from tests.e2e.faults.cluster import becomes
from tests.e2e.faults.fault import Act
from tests.e2e.faults.registry import EmptyRegistry
from tests.e2e.faults.scene import Scene
from tests.e2e.faults.webhook import NAME, Webhook

GPUS_OF_NODE_B = 4
EVENT_TTL = "30s"
EVENTS_GONE_S = 150
NAMES, ABOUT = "jsonpath={.items[*].metadata.name}", "jsonpath={.items[*].involvedObject.name}"
NODE_BACK_S = 90
WATCHED_S = 15
"""For a watch to start and to look at everything."""
QUOTA = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "starforge-faults"},
    "spec": {"hard": {"pods": "0"}},
}


def dies(name: str) -> Act:
    async def strike(scene: Scene) -> None:
        await scene.cluster.kill(name)

    return strike


def comes_back(name: str) -> Act:
    async def heal(scene: Scene) -> None:
        await scene.cluster.start(name)
        await scene.cluster.answers()

    return heal


async def operator_leaves(scene: Scene) -> None:
    await scene.cluster.scale_operator(0)


async def operator_returns(scene: Scene) -> None:
    await scene.cluster.scale_operator(1)


async def node_is_lost(scene: Scene) -> None:
    """As when a machine is taken away: its kubelet says nothing more, and somebody removes it from the cluster."""
    await scene.cluster.kill("kubelet-node-b")
    await scene.cluster.kubectl("delete", "node", "node-b", "--wait=false")


async def node_returns(scene: Scene) -> None:
    await scene.cluster.start("kubelet-node-b")

    async def is_there() -> bool:
        return bool((await scene.cluster.kubectl("get", "node", "node-b", "--ignore-not-found")).strip())

    await becomes(NODE_BACK_S, is_there)
    gpus = f'[{{"op": "add", "path": "/status/capacity/nvidia.com~1gpu", "value": "{GPUS_OF_NODE_B}"}}]'
    await scene.cluster.kubectl("patch", "node", "node-b", "--subresource=status", "--type=json", "-p", gpus)
    await nodes_are_ready(scene)


async def nodes_are_ready(scene: Scene) -> None:
    await scene.cluster.kubectl("wait", "--for=condition=Ready", "node", "--all", "--timeout=80s")


async def kubelet_comes_back(scene: Scene) -> None:
    await scene.cluster.start("kubelet-node-b")
    await nodes_are_ready(scene)


async def node_is_drained(scene: Scene) -> None:
    """Cordoned, and the jobs' Pods evicted; the operator may be there as well and is left alone."""
    options = ("--force", "--ignore-daemonsets", "--delete-emptydir-data", "--grace-period=10", "--timeout=80s")
    await scene.cluster.kubectl("drain", "node-b", "--pod-selector=starforge.io/managed=true", *options)


async def node_is_cordoned(scene: Scene) -> None:
    await scene.cluster.kubectl("cordon", "node-b")


async def node_is_uncordoned(scene: Scene) -> None:
    await scene.cluster.kubectl("uncordon", "node-b")


def pod_is_deleted(role: str) -> Act:
    async def strike(scene: Scene) -> None:
        await scene.cluster.ours("delete", "pod", await scene.cluster.pod_of(scene.job, role), "--wait=false")

    return strike


async def memory_is_full(scene: Scene) -> None:
    """The job does it itself, as soon as it has printed its lines; from then on it is counted."""
    await until_printed(scene, lines_to_come=0)


async def registry_has_nothing(scene: Scene) -> None:
    scene.registry = EmptyRegistry()


async def registry_goes(scene: Scene) -> None:
    if scene.registry:
        await asyncio.to_thread(scene.registry.stop)
        scene.registry = None


async def quota_is_full(scene: Scene) -> None:
    await scene.cluster.ours("apply", "-f", "-", stdin=json.dumps(QUOTA))


async def quota_is_lifted(scene: Scene) -> None:
    await scene.cluster.ours("delete", "resourcequota", "starforge-faults", "--ignore-not-found")


def webhook_stands(group: str, version: str, resource: str, *, silent: bool = False) -> Act:
    """A webhook that denies what is created, or that answers too late if it is `silent`."""

    async def strike(scene: Scene) -> None:
        address = urlsplit(scene.cluster.env["CLUSTER_API_SERVER"]).hostname or ""
        scene.webhook = Webhook(address, scene.cluster.home / "pki", silent=silent)
        await scene.cluster.apply(scene.webhook.configuration(scene.cluster.namespace, group, version, resource))

    return strike


async def webhook_falls(scene: Scene) -> None:
    await scene.cluster.kubectl("delete", "validatingwebhookconfiguration", NAME, "--ignore-not-found")
    if scene.webhook:
        await asyncio.to_thread(scene.webhook.stop)
        scene.webhook = None


async def token_is_revoked(scene: Scene) -> None:
    await scene.cluster.revoke_token()


async def token_is_replaced(scene: Scene) -> None:
    await scene.cluster.replace_token()


async def rayjob_is_deleted(scene: Scene) -> None:
    await scene.cluster.ours("delete", "rayjob", "-l", f"starforge.io/job={scene.job}", "--wait=false")


async def namespace_is_deleted(scene: Scene) -> None:
    await scene.cluster.kubectl("delete", "namespace", scene.cluster.namespace, "--wait=false")


async def namespace_is_made_again(scene: Scene) -> None:
    there = scene.cluster
    await there.kubectl("wait", "--for=delete", f"namespace/{there.namespace}", "--timeout=150s", limit_s=160)
    await there.prepare()


async def events_live_shortly(scene: Scene) -> None:
    """The API server is started with an EVENT_TTL of seconds, and a node is cordoned, so that a job waits."""
    scene.kept["event-ttl"] = await _set_event_ttl(scene, f"--event-ttl={EVENT_TTL}")
    await node_is_cordoned(scene)


async def events_are_gone(scene: Scene) -> None:
    """Return once no Event tells of the waiting job any more, and the watch has begun anew without them."""

    async def are_gone() -> bool:
        pods = await scene.cluster.ours("get", "pod", "-l", f"starforge.io/job={scene.job}", "-o", NAMES)
        about = await scene.cluster.ours("get", "events", "--field-selector=reason=FailedScheduling", "-o", ABOUT)
        return not set(pods.split()) & set(about.split())

    await becomes(EVENTS_GONE_S, are_gone)
    watch = scene.site.processes["watch"]
    await asyncio.to_thread(watch.bury)
    watch.start()
    await asyncio.sleep(WATCHED_S)


async def events_expire(scene: Scene) -> None:
    """What holds the job is known all the same; then there is room for it."""
    try:
        if "event-ttl" in scene.kept:
            await events_are_gone(scene)
            codes = scene.jobs[0].story.steps[-1].codes
            if "UNSCHEDULABLE" not in codes:
                scene.problems.append(f"once the Events had expired, what held the job was {sorted(codes)}")
    finally:
        await events_live_long(scene)


async def events_live_long(scene: Scene) -> None:
    """As it was."""
    usual = scene.kept.pop("event-ttl", None)
    if usual:
        await _set_event_ttl(scene, usual)
    await node_is_uncordoned(scene)


async def _set_event_ttl(scene: Scene, option: str) -> str:
    """Start the API server with this option; the one that it had before."""
    command = scene.cluster.home / "command" / "apiserver"
    words = command.read_text().split(" ")
    at = next(index for index, word in enumerate(words) if word.startswith("--event-ttl="))
    before, words[at] = words[at], option
    command.write_text(" ".join(words))
    await comes_back("apiserver")(scene)
    return before.strip()
