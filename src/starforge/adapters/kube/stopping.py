"""Asking Ray to stop a job, by way of the API server."""

from kubernetes.client.exceptions import ApiException

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.errors import answer_of
from starforge.adapters.kube.paths import Paths
from starforge.domain.observation import RayJobView
from starforge.domain.ports import StopAnswer


def stop_job(api: KubeApi, rayjob: RayJobView | None) -> StopAnswer:
    """SIGTERM to the driver of the run; NOBODY_TO_ASK if there is none, or no dashboard that could pass it on."""
    if rayjob is None or not rayjob.ray_cluster or not rayjob.submission_id:
        return StopAnswer.NOBODY_TO_ASK
    path = Paths(rayjob.namespace).dashboard(rayjob.ray_cluster, f"api/jobs/{rayjob.submission_id}/stop")
    try:
        answer = api.post(path)
    except ApiException as error:
        if _nobody(error):
            return StopAnswer.NOBODY_TO_ASK
        raise
    return StopAnswer.ASKED if answer.get("stopped") else StopAnswer.NOBODY_TO_ASK


def _nobody(error: ApiException) -> bool:
    """No such Service or job, or nothing behind the Service: all but the API server's own troubles."""
    answer = answer_of(error)
    unreachable = "error trying to reach service" in answer.message or "no endpoints available" in answer.message
    return answer.status == 404 or (answer.status in (500, 502, 503, 504) and unreachable)
