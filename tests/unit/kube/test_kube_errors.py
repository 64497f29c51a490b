"""What an answer means for a job: final with a reason, or worth asking again."""

import json

import pytest
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import ReadTimeoutError

from starforge.adapters.kube.errors import asking, classified, is_missing, is_taken
from starforge.domain.errors import FleetRefused, FleetUnavailable
from starforge.domain.reason import ReasonCode
from tests.unit.kube.kube_orders import AT

WEBHOOK = 'admission webhook "policy.example.com" denied the request: no GPUs on Sundays'
QUOTA = 'rayjobs.ray.io "x" is forbidden: exceeded quota: gpus, requested: 8, used: 8, limited: 8'


def answered(
    status: int, message: str = "no", *, reason: str = "", kind: str = "", headers: dict[str, str] | None = None
) -> ApiException:
    error = ApiException(status=status, reason="whatever")
    error.body = json.dumps({"kind": "Status", "message": message, "reason": reason, "details": {"kind": kind}})
    error.headers = headers or {}
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (answered(403, "cannot create resource"), ReasonCode.PERMISSION),
        (answered(403, WEBHOOK), ReasonCode.ADMISSION_DENIED),
        (answered(400, WEBHOOK), ReasonCode.ADMISSION_DENIED),
        (
            answered(422, "ValidatingAdmissionPolicy 'x' with binding 'y' denied request: no", reason="Invalid"),
            ReasonCode.ADMISSION_DENIED,
        ),
        (
            answered(403, 'rayjobs.ray.io is forbidden: User "system:serviceaccount:sf:sf" cannot create resource'),
            ReasonCode.PERMISSION,
        ),
        (answered(400), ReasonCode.INVALID_SPEC),
        (answered(422, reason="Invalid"), ReasonCode.INVALID_SPEC),
        (answered(413), ReasonCode.INVALID_SPEC),
        (answered(500, "etcdserver: request is too large"), ReasonCode.INVALID_SPEC),
        (answered(404, "the server could not find the requested resource"), ReasonCode.OPERATOR_ABSENT),
        (answered(404, 'namespaces "x" not found', kind="namespaces"), ReasonCode.LAUNCH_FAILED),
        (answered(403, "unable to create in namespace x because it is being terminated"), ReasonCode.LAUNCH_FAILED),
    ],
)
def test_a_no_that_stays_a_no(error: ApiException, code: ReasonCode) -> None:
    refused = classified(error, doing="start x", at=AT)
    assert isinstance(refused, FleetRefused)
    assert refused.reason.code is code
    assert refused.reason.evidence[0].text.startswith(f"HTTP {error.status}")


@pytest.mark.parametrize(
    "error",
    [
        answered(401, "Unauthorized"),
        answered(403, QUOTA),
        answered(409, reason="Conflict"),
        answered(429),
        answered(500),
        answered(503),
        ApiException(status=0, reason="SSLError\ncertificate verify failed"),
        ReadTimeoutError(None, "/", "Read timed out."),  # type: ignore[arg-type]
        ConnectionResetError("reset"),
    ],
)
def test_what_may_pass_is_asked_again(error: Exception) -> None:
    unavailable = classified(error, doing="start x", at=AT)
    assert isinstance(unavailable, FleetUnavailable)
    assert "start x" in unavailable.message


SILENT = 'Internal error occurred: failed calling webhook "w.x": failed to call webhook: context deadline exceeded'


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (answered(403, QUOTA), ReasonCode.QUOTA, "quota gpus of the namespace is used up"),
        (answered(401, "Unauthorized"), ReasonCode.PERMISSION, "does not let StarForge in, so it can't start x"),
        (answered(500, SILENT), ReasonCode.API_UNAVAILABLE, "admission webhook w.x does not answer"),
    ],
)
def test_what_holds_a_launch_that_is_asked_for_again(error: Exception, code: ReasonCode, said: str) -> None:
    unavailable = classified(error, doing="start x", at=AT)
    assert isinstance(unavailable, FleetUnavailable)
    assert unavailable.reason is not None
    assert (unavailable.reason.code, unavailable.reason.patience_s) == (code, None)
    assert said in unavailable.reason.message
    assert unavailable.reason.evidence


def test_an_outage_is_no_more_than_that() -> None:
    for error in (answered(503, SILENT), answered(500, "etcdserver: request timed out"), ConnectionResetError("reset")):
        unavailable = classified(error, doing="start x", at=AT)
        assert isinstance(unavailable, FleetUnavailable)
        assert unavailable.reason is None


def test_the_server_says_when_to_come_back() -> None:
    assert classified(answered(429, headers={"Retry-After": "7"}), doing="x", at=AT).retry_after_s == 7


def test_a_signed_url_in_an_answer_is_removed() -> None:
    refused = classified(answered(422, "Invalid value: https://s3/a.zip?X-Amz-Signature=dead"), doing="x", at=AT)
    assert isinstance(refused, FleetRefused)
    assert "dead" not in refused.message + refused.reason.evidence[0].text


def test_an_answer_that_is_no_status_object_is_shown_as_it_is() -> None:
    error = ApiException(status=502, reason="Bad Gateway")
    error.body = "<html>proxy</html>"
    assert "<html>proxy</html>" in classified(error, doing="x", at=AT).message


def test_conflicts_tell_who_was_first() -> None:
    assert is_taken(answered(409, reason="AlreadyExists"))
    assert not is_taken(answered(409, reason="Conflict"))
    assert is_missing(answered(404))


def test_errors_of_ours_pass_through() -> None:
    with pytest.raises(ZeroDivisionError), asking("x", lambda: AT):
        raise ZeroDivisionError
    with pytest.raises(FleetUnavailable), asking("x", lambda: AT):
        raise TimeoutError("slow")
