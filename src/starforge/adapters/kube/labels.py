"""How objects in the cluster are found again: by the labels of their run, or by names that end with its hash."""

import re
from typing import Any, TypeAlias

from starforge.domain.names import (
    LABEL_ATTEMPT,
    LABEL_INSTALLATION,
    LABEL_JOB,
    LABEL_MANAGED,
    LABEL_PLAYGROUND,
    JobId,
    PlaygroundId,
    RunKey,
    run_name,
)

KubeObject: TypeAlias = dict[str, Any]

# Number of the first machine of a worker group within its pool: 1 in the primary pool, whose machine 0 is the head.
ANNOTATION_FIRST_MACHINE = "starforge.io/first-machine"
# GPUs of a machine, also where its Pod does not ask Kubernetes for them.
ANNOTATION_GPUS = "starforge.io/gpus"
MANAGED = f"{LABEL_MANAGED}=true"


def run_labels(run: RunKey, installation: str | None = None) -> dict[str, str]:
    """Labels of every object that is made for a run."""
    whose = {LABEL_INSTALLATION: installation} if installation else {}
    return {LABEL_MANAGED: "true", LABEL_JOB: run.job, LABEL_ATTEMPT: str(run.attempt), **whose}


def selector(run: RunKey) -> str:
    return f"{LABEL_JOB}={run.job},{LABEL_ATTEMPT}={run.attempt}"


def run_of(kube_object: KubeObject) -> RunKey | None:
    """The run that an object's labels name; None if it is not one of ours."""
    labels = kube_object["metadata"].get("labels") or {}
    job, attempt = labels.get(LABEL_JOB), labels.get(LABEL_ATTEMPT, "")
    if labels.get(LABEL_MANAGED) != "true" or not job or not attempt.isdecimal():
        return None
    return RunKey(JobId(job), int(attempt))


def playground_of(kube_object: KubeObject) -> PlaygroundId | None:
    """The playground that an object's labels name; None if it is not part of one of ours."""
    labels = kube_object["metadata"].get("labels") or {}
    playground = labels.get(LABEL_PLAYGROUND)
    return PlaygroundId(playground) if playground and labels.get(LABEL_MANAGED) == "true" else None


def installation_of(kube_object: KubeObject) -> str | None:
    """The installation that launched it; None if it is from a version that did not say."""
    installation: str | None = (kube_object["metadata"].get("labels") or {}).get(LABEL_INSTALLATION)
    return installation


def belongs_by_name(run: RunKey, kube_object: KubeObject) -> bool:
    """Whether KubeRay made it for the run, without our labels: its own name or an owner's ends with the run's hash."""
    tail = run_name("x", run).rpartition("-")[2]
    pattern = re.compile(rf"-{tail}(?:-[a-z0-9]{{5}})?$")
    owners = kube_object["metadata"].get("ownerReferences") or []
    return any(pattern.search(name) for name in (kube_object["metadata"]["name"], *(owner["name"] for owner in owners)))
