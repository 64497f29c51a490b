"""`starforge retry`."""

import os
import uuid

from starforge.cli.consoles import out_console, print_json
from starforge.cli.documents import RETRY_JOB
from starforge.cli.exits import ExitCode
from starforge.cli.gateway import Gateway
from starforge.cli.submitting import again
from starforge.cli.verbs.cancel import refuse
from starforge.cli.verbs.submit import follow_to_its_end


def run(job_id: str, *, note: str | None, idempotency_key: str | None, follow: bool, as_json: bool) -> ExitCode:
    key = idempotency_key or str(uuid.uuid4())  # so that a call that was cut can be repeated here
    with Gateway.from_settings(os.environ) as gateway:
        answer = again(lambda: gateway.ask(RETRY_JOB, id=job_id, key=key, note=note))["retryJob"]
        refuse(job_id, answer)
        number = answer["attempt"]["number"]
        if as_json:
            told = {"status": answer["status"], "attempt": number, "job": answer["job"]}
            print_json({"type": "retried", **told} if follow else told, indent=None if follow else 2)
        elif answer["status"] == "REPLAYED":
            out_console().print(f"This was asked for before: it is attempt {number} of {job_id}.", soft_wrap=True)
        else:
            out_console().print(f"Attempt {number} of {job_id} is on its way.", soft_wrap=True)
        return follow_to_its_end(gateway, job_id, as_json=as_json) if follow else ExitCode.SUCCEEDED
