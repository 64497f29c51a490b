"""The kuberay fleet on a real cluster: launch, watch, logs, Events, stop, delete, and the proof that all is gone."""

import hashlib
import io
import os
import queue
import threading
import uuid
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from starforge.adapters.kube.fleet import KubeFleet
from starforge.adapters.kube.settings import SubmissionMode
from starforge.domain.names import Digest, JobId, RunKey, job_id, run_name
from starforge.domain.observation import EventSeen, FleetHeard, LogSeen, PodRole, RunPhase, RunSeen, Seen
from starforge.domain.ports import LaunchOrder, Resume, Signed, StopAnswer
from starforge.domain.spec import Deadlines, EnvVar, JobSpec, PoolSpec
from starforge.domain.unframing import FrameParser
from starforge.domain.wire import Exit
from tests.e2e.conftest import Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
TRICKY = '$(HOME) $$ it\'s "quoted"\nand a second line'
WAIT_S = 30.0  # a watch tells something every second


@dataclass
class Heard:
    """What a watch told, gathered by a thread; `until` waits for something in it."""

    fleet: KubeFleet
    stop: threading.Event = field(default_factory=threading.Event)
    seen: list[Seen] = field(default_factory=list)
    news: "queue.Queue[Seen | BaseException]" = field(default_factory=queue.Queue)

    def run(self) -> None:
        try:
            for each in self.fleet.watch(lambda _run, _source: Resume(None), self.stop):
                self.news.put(each)
        except BaseException as error:  # noqa: BLE001  # raised in the test's own thread
            self.news.put(error)

    def until(self, found: Callable[[Seen], bool]) -> Seen:
        for each in self.seen:
            if found(each):
                return each
        while True:
            told = self.news.get(timeout=WAIT_S)
            if isinstance(told, BaseException):
                raise told
            self.seen.append(told)
            if found(told):
                return told


@pytest.fixture(params=["https", "http"])
def s3(request: pytest.FixtureRequest, cluster: Cluster) -> Any:
    endpoint = os.environ.get(f"S3_{request.param.upper()}_ENDPOINT")
    if endpoint is None:
        pytest.skip(f"S3_{request.param.upper()}_ENDPOINT is not set")
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=os.environ["FORGE_S3_ACCESS_KEY"],
        aws_secret_access_key=os.environ["FORGE_S3_SECRET_KEY"],
        region_name="us-east-1",
        verify=cluster.ca_file,
        config=Config(s3={"addressing_style": "path"}, signature_version="s3v4", retries={"max_attempts": 3}),
    )


@pytest.fixture
def fleet(cluster: Cluster, s3: Any) -> Iterator[KubeFleet]:
    https = s3.meta.endpoint_url.startswith("https")
    fleet = KubeFleet(replace(cluster.config, s3_ca_file=cluster.ca_file if https else None))
    yield fleet
    fleet.close()


@pytest.fixture
def run(fleet: KubeFleet) -> Iterator[RunKey]:
    run = RunKey(job_id(uuid.uuid4().hex), 1)
    yield run
    fleet.delete(run)


@pytest.fixture
def heard(fleet: KubeFleet) -> Iterator[Heard]:
    heard = Heard(fleet)
    thread = threading.Thread(target=heard.run, daemon=True)
    thread.start()
    yield heard
    heard.stop.set()
    thread.join(5)
    assert not thread.is_alive()
    assert [each.name for each in threading.enumerate() if each.name.startswith(("watch", "log "))] == []


def capsule(mode: str) -> bytes:
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("capsule/mode", mode)
        archive.writestr("capsule/.starforge/runner.pex", (Path(__file__).parent / "kube_runner.py").read_bytes())
    return zipped.getvalue()


def sign(s3: Any, method: str, verb: str, **params: str) -> Signed:
    url = s3.generate_presigned_url(method, Params={"Bucket": bucket(), **params}, ExpiresIn=6000)
    headers = (("If-None-Match", "*"),) if verb == "PUT" else ()
    return Signed(verb, url, headers, datetime.now(UTC) + timedelta(seconds=6000))


def bucket() -> str:
    return os.environ.get("FORGE_S3_BUCKET", "starforge")


def order(s3: Any, cluster: Cluster, run: RunKey, *, mode: str) -> LaunchOrder:
    if bucket() not in [each["Name"] for each in s3.list_buckets()["Buckets"]]:
        s3.create_bucket(Bucket=bucket())
    body = capsule(mode)
    sha256 = hashlib.sha256(body).hexdigest()
    s3.put_object(Bucket=bucket(), Key=f"capsules/{sha256}.zip", Body=body)
    gpus = 1 if cluster.config.gpu_passthrough else 0
    pools = (
        PoolSpec("train", os.environ.get("E2E_SERIES", "h200"), 1, gpus, 1, "2Gi", "700Mi"),
        PoolSpec("second", os.environ.get("E2E_SERIES_2", "b200"), 1, gpus, 1, "2Gi", "700Mi"),
    )
    spec = JobSpec(
        name=f"Try {mode}",
        project="default",
        fleet="kuberay",
        description=None,
        image=cluster.config.image,
        command=("true",),
        env=(EnvVar("TRICKY", TRICKY),),
        pools=pools if mode == "finish" else pools[:1],
        deadlines=Deadlines(0, 600, 600),
        labels=(),
        priority=0,
        cancel_grace_seconds=20,
    )
    return LaunchOrder(
        run=run,
        name=run_name(spec.name, run),
        spec=spec,
        capsule=sign(s3, "get_object", "GET", Key=f"capsules/{sha256}.zip"),
        capsule_digest=Digest(sha256),
        transport_sha256=sha256,
        claim=sign(s3, "put_object", "PUT", Key=f"logs/{run}/claim", IfNoneMatch="*"),
        claim_until=datetime.now(UTC) + timedelta(seconds=600),
        nonce="the-nonce",
    )


def driver_log(heard: Heard, run: RunKey) -> tuple[list[str], list[object]]:
    """The user's lines and the messages of the run, read as the platform reads them."""
    parser = FrameParser(trusts="the-nonce".__eq__)
    lines: list[str] = []
    messages: list[object] = []
    for each in heard.seen:
        if isinstance(each, LogSeen) and each.run == run and each.container == "ray-head":
            parsed = parser.feed(each.lines)
            lines += [line.text for line in parsed.lines]
            messages += parsed.messages
    return lines, messages


def is_phase(run: RunKey, phase: RunPhase) -> Callable[[Seen], bool]:
    return lambda each: isinstance(each, RunSeen) and each.run == run and each.phase is phase


def is_gone(run: RunKey) -> Callable[[Seen], bool]:
    return lambda each: isinstance(each, RunSeen) and each.run == run and not each.pods and each.rayjob is None


def says(run: RunKey, text: bytes) -> Callable[[Seen], bool]:
    return lambda each: isinstance(each, LogSeen) and each.run == run and any(text in line.data for line in each.lines)


def head_closed(run: RunKey) -> Callable[[Seen], bool]:
    return lambda each: isinstance(each, LogSeen) and each.run == run and each.container == "ray-head" and each.closed


def test_a_run_from_launch_to_nothing_left(
    cluster: Cluster, s3: Any, fleet: KubeFleet, heard: Heard, run: RunKey
) -> None:
    wanted = order(s3, cluster, run, mode="finish")
    made = fleet.launch(wanted)
    assert fleet.launch(replace(wanted, nonce="another")) == made, "the second launch adopts the first"
    ended = heard.until(is_phase(run, RunPhase.SUCCEEDED))
    assert isinstance(ended, RunSeen)
    assert ended.uid == made.uid
    told = [each for each in heard.seen if isinstance(each, RunSeen) and each.run == run]
    pods = {(pod.role, pod.pool, pod.machine) for each in told for pod in each.pods}
    assert pods == {(PodRole.HEAD, "train", 0), (PodRole.WORKER, "second", 0)}
    fleet.delete(run)
    heard.until(is_gone(run))
    heard.until(head_closed(run))
    assert fleet.remaining(run) == []
    assert fleet.look(run).phase is RunPhase.ABSENT

    lines, messages = driver_log(heard, run)
    assert lines == [f"variable {TRICKY!r}", *(f"line {number}" for number in range(20))]
    assert [each.code for each in messages if isinstance(each, Exit)] == [0]
    reasons = {each.reason for each in heard.seen if isinstance(each, EventSeen) and each.run == run}
    assert {"CreatedRayCluster", "CreatedHeadPod", "Scheduled"} <= reasons
    assert [each.problem for each in heard.seen if isinstance(each, FleetHeard) and each.problem] == []


def test_a_command_is_asked_to_stop(cluster: Cluster, s3: Any, fleet: KubeFleet, heard: Heard, run: RunKey) -> None:
    assert fleet.stop(run, grace_s=20) is StopAnswer.NOBODY_TO_ASK
    fleet.launch(order(s3, cluster, run, mode="wait"))
    heard.until(says(run, b"ready to be stopped"))
    assert fleet.stop(run, grace_s=20) is StopAnswer.ASKED
    heard.until(says(run, b"stopped in time"))
    ended = heard.until(is_phase(run, RunPhase.STOPPED))
    assert isinstance(ended, RunSeen)
    assert ended.rayjob is not None
    assert ended.rayjob.job_status == "STOPPED"


@pytest.mark.parametrize("s3", ["https"], indirect=True)
def test_a_submitter_pod_hands_the_job_over(cluster: Cluster, s3: Any, heard: Heard, run: RunKey) -> None:
    by_pod = replace(cluster.config, s3_ca_file=cluster.ca_file, submission_mode=SubmissionMode.K8S_JOB)
    fleet = KubeFleet(by_pod)
    fleet.launch(order(s3, cluster, run, mode="alone"))
    heard.until(is_phase(run, RunPhase.SUCCEEDED))
    told = [each for each in heard.seen if isinstance(each, RunSeen) and each.run == run]
    assert {pod.role for each in told for pod in each.pods} == {PodRole.HEAD, PodRole.SUBMITTER}
    about = {each.object.kind for each in heard.seen if isinstance(each, EventSeen) and each.run == run}
    assert {"RayJob", "RayCluster", "Pod", "Job"} <= about
    assert {left.object.kind for left in fleet.remaining(run)} >= {"RayJob", "RayCluster", "Secret", "Service", "Job"}
    fleet.delete(run)
    heard.until(is_gone(run))
    assert fleet.remaining(run) == []
    fleet.close()


def test_a_run_that_never_was_leaves_nothing(fleet: KubeFleet) -> None:
    run = RunKey(JobId("job-never"), 1)
    fleet.delete(run)
    assert fleet.remaining(run) == []
    assert fleet.look(run).phase is RunPhase.ABSENT
