"""What cancelJobs answers when some jobs were canceled and one was refused."""

from starforge.api.enums import UserErrorCode
from starforge.api.jobs.batch import swept_payload
from starforge.domain.actions.cancel import CancelStatus
from starforge.domain.actions.cancel_many import Swept
from starforge.domain.errors import Problem, WrongState
from tests.contract.store.examples import a_job


def test_a_refused_job_has_its_mistake_and_the_others_are_told_all_the_same() -> None:
    canceled, refused = a_job(1), a_job(2)
    mistake = WrongState([Problem("OUT_OF_RANGE", ("graceSeconds",), "graceSeconds must be 0 to 3,600.")])
    outcomes = [(CancelStatus.REQUESTED, canceled), (CancelStatus.REFUSED, refused)]
    payload = swept_payload(Swept(outcomes, 2, 0, refused={refused.id: mistake}), dry_run=False)
    assert payload.user_errors == []
    assert [(one.job.id, one.status, len(one.user_errors)) for one in payload.outcomes if one.job] == [
        (canceled.id, CancelStatus.REQUESTED, 0), (refused.id, CancelStatus.REFUSED, 1),
    ]  # fmt: skip
    [error] = payload.outcomes[1].user_errors
    assert (error.code, error.field) == (UserErrorCode.OUT_OF_RANGE, ["graceSeconds"])
    assert error.message == mistake.message
