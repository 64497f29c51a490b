"""What Kubernetes says when it does not let an object be made: whether that is final, and in a person's words."""

import re
from dataclasses import dataclass

from starforge.domain.reason import ReasonCode

AT_ONCE = 0.0
A_REPEAT = 15.0
"""Seconds in which whoever is refused tries at least once more: kubelet, KubeRay and the scheduler take 10 at most."""


@dataclass(frozen=True)
class Denial:
    """`message` is without the names of Pods, which differ from try to try. `patience_s` as in Reason."""

    code: ReasonCode
    message: str
    advice: str
    patience_s: float | None


@dataclass(frozen=True)
class _Kind:
    words: re.Pattern[str]
    code: ReasonCode
    message: str
    advice: str
    patience_s: float | None


_POLICY = "Change the spec so that the policy lets it pass, or ask who runs the cluster."
_QUOTA = "It goes on by itself as soon as other work of the namespace ends, or when its quota is raised."
_KINDS = tuple(
    _Kind(re.compile(words, re.DOTALL), code, message, advice, patience)
    for words, code, message, advice, patience in (
        (
            r"""(admission webhook "[^"]+") denied the request(?:: (.*))?""",
            ReasonCode.ADMISSION_DENIED,
            "{0} denied it: {1}",
            _POLICY,
            AT_ONCE,
        ),
        (
            r"""(ValidatingAdmissionPolicy '[^']+').*? denied request: (.*)""",
            ReasonCode.ADMISSION_DENIED,
            "{0} denied it: {1}",
            _POLICY,
            AT_ONCE,
        ),
        (
            r"""violates (PodSecurity "[^"]+"): (.*)""",
            ReasonCode.ADMISSION_DENIED,
            "{0} denied it: {1}",
            _POLICY,
            AT_ONCE,
        ),
        (
            r"""exceeded quota: ([^,]+), (requested: .*)""",
            ReasonCode.QUOTA,
            "quota {0} of the namespace is used up ({1})",
            _QUOTA,
            None,
        ),
        (
            r"""(?:failed|status unknown for) quota: ([^:,]+)(?:[:,] (.*))?""",
            ReasonCode.QUOTA,
            "quota {0} of the namespace does not let it pass ({1})",
            "Ask who runs the cluster what the quota demands.",
            None,
        ),
        (
            r"""failed calling webhook "([^"]+)": (.*)""",
            ReasonCode.API_UNAVAILABLE,
            "admission webhook {0} does not answer ({1})",
            "It goes on by itself as soon as the webhook answers; whoever runs the cluster can see to it.",
            None,
        ),
        (
            r"""error looking up (service account) (.*)""",
            ReasonCode.MISSING_REFERENCE,
            "a {0} is missing: {1}",
            "Create the service account, or correct the settings that name it.",
            A_REPEAT,
        ),
        (
            r"""User "([^"]+)" (cannot .*)""",
            ReasonCode.PERMISSION,
            "{0} has no right to: it {1}",
            "Give that account the right; deploy/rbac.yaml has the ones of StarForge.",
            A_REPEAT,
        ),
        (
            r"""(because it is) (being terminated)""",
            ReasonCode.DELETED_OUTSIDE,
            "the namespace was deleted and is {1}",
            "Create the namespace again and retry the job.",
            A_REPEAT,
        ),
        (
            r"""(?:^|[\s"])(is invalid): (.*)""",
            ReasonCode.INVALID_SPEC,
            "what was asked for {0}: {1}",
            "Change the spec as the message says and submit it again.",
            AT_ONCE,
        ),
        (
            r"""(is forbidden): (.*)""",
            ReasonCode.ADMISSION_DENIED,
            "it {0}: {1}",
            _POLICY,
            A_REPEAT,
        ),
    )
)


def denial(text: str) -> Denial | None:
    """What a refusal in Kubernetes' words means; None for words that say no such thing."""
    for kind in _KINDS:
        found = kind.words.search(text)
        if found:
            parts = [" ".join(part.split()) if part else "it does not say why" for part in found.groups()]
            return Denial(kind.code, kind.message.format(*parts), kind.advice, kind.patience_s)
    return None
