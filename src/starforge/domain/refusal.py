"""Why a runner did not start the command: it says so on the wire, and by its exit code to Ray."""

from datetime import datetime

from starforge.domain.reason import Evidence, EvidenceSource, Reason, ReasonCode, reason
from starforge.domain.wire import RefusedWhy

BY_EXIT_CODE = {113: RefusedWhy.CLAIMED, 114: RefusedWhy.UNCLAIMED, 115: RefusedWhy.CORRUPT}


def refusal(why: RefusedWhy, said: str, source: EvidenceSource, at: datetime) -> Reason:
    """The reason of an attempt whose runner refused to start the command."""
    evidence = (Evidence(source, said[:2000], at),)
    if why is RefusedWhy.CORRUPT:
        text = f"The Capsule did not arrive as it was built: {said}"
        return reason(ReasonCode.CAPSULE_INVALID, text[:2000], at, evidence=evidence)
    if why is RefusedWhy.UNCLAIMED:
        text = "The runner could not reach the object store to claim the attempt, so it did not start the command."
        return reason(ReasonCode.OBJECT_STORE_UNAVAILABLE, text, at, evidence=evidence)
    text = "This attempt had started before, on a head that was lost; it is not started a second time."
    return reason(ReasonCode.HEAD_LOST, text, at, advice="Retry the job.", evidence=evidence)
