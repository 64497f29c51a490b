"""What Kubernetes says when it refuses, as its API server writes it."""

import pytest

from starforge.domain.denials import A_REPEAT, AT_ONCE, denial
from starforge.domain.reason import ReasonCode

HEAD = 'pods "try-1-abcde-head-xk2vp" is forbidden: '


@pytest.mark.parametrize(
    ("said", "code", "patience", "told"),
    [
        (
            'admission webhook "policy.example.com" denied the request: no GPUs on Sundays',
            ReasonCode.ADMISSION_DENIED,
            AT_ONCE,
            'admission webhook "policy.example.com" denied it: no GPUs on Sundays',
        ),
        (
            'admission webhook "policy.example.com" denied the request',
            ReasonCode.ADMISSION_DENIED,
            AT_ONCE,
            'admission webhook "policy.example.com" denied it: it does not say why',
        ),
        (
            HEAD + "ValidatingAdmissionPolicy 'gpus' with binding 'all' denied request: too many",
            ReasonCode.ADMISSION_DENIED,
            AT_ONCE,
            "ValidatingAdmissionPolicy 'gpus' denied it: too many",
        ),
        (
            HEAD + 'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false',
            ReasonCode.ADMISSION_DENIED,
            AT_ONCE,
            'PodSecurity "restricted:latest" denied it: allowPrivilegeEscalation != false',
        ),
        (
            HEAD + "exceeded quota: gpus, requested: pods=1, used: pods=4, limited: pods=4",
            ReasonCode.QUOTA,
            None,
            "quota gpus of the namespace is used up (requested: pods=1, used: pods=4, limited: pods=4)",
        ),
        (
            HEAD + "failed quota: all: must specify limits.cpu for: ray-head",
            ReasonCode.QUOTA,
            None,
            "quota all of the namespace does not let it pass (must specify limits.cpu for: ray-head)",
        ),
        (
            HEAD + "status unknown for quota: all, resources: pods",
            ReasonCode.QUOTA,
            None,
            "quota all of the namespace does not let it pass (resources: pods)",
        ),
        (
            'Internal error occurred: failed calling webhook "w.x": failed to call webhook: Post "https://w.x": EOF',
            ReasonCode.API_UNAVAILABLE,
            None,
            'admission webhook w.x does not answer (failed to call webhook: Post "https://w.x": EOF)',
        ),
        (
            HEAD + 'error looking up service account ns/trainer: serviceaccount "trainer" not found',
            ReasonCode.MISSING_REFERENCE,
            A_REPEAT,
            'a service account is missing: ns/trainer: serviceaccount "trainer" not found',
        ),
        (
            'pods is forbidden: User "system:serviceaccount:ray:op" cannot create resource "pods" in API group ""',
            ReasonCode.PERMISSION,
            A_REPEAT,
            'system:serviceaccount:ray:op has no right to: it cannot create resource "pods" in API group ""',
        ),
        (
            HEAD + "unable to create new content in namespace ns because it is being terminated",
            ReasonCode.DELETED_OUTSIDE,
            A_REPEAT,
            "the namespace was deleted and is being terminated",
        ),
        (
            'Pod "x" is invalid: spec.containers[0].image: Required value',
            ReasonCode.INVALID_SPEC,
            AT_ONCE,
            "what was asked for is invalid: spec.containers[0].image: Required value",
        ),
        (
            HEAD + "maximum memory usage per Container is 1Gi, but limit is 2Gi",
            ReasonCode.ADMISSION_DENIED,
            A_REPEAT,
            "it is forbidden: maximum memory usage per Container is 1Gi, but limit is 2Gi",
        ),
    ],
)
def test_a_refusal(said: str, code: ReasonCode, patience: float | None, told: str) -> None:
    found = denial(said)
    assert found is not None
    assert (found.code, found.patience_s, found.message) == (code, patience, told)
    assert found.advice


@pytest.mark.parametrize("said", ["", "etcdserver: request timed out", "the server is currently unable to handle it"])
def test_what_is_no_refusal(said: str) -> None:
    assert denial(said) is None


def test_names_that_change_from_try_to_try_are_not_told() -> None:
    one, other = (denial(f'pods "head-{name}" is forbidden: exceeded quota: q, requested: a=1') for name in ("a", "b"))
    assert one == other
