"""What every server is asked, the same text for all of them."""

import json

TOKEN = "t0ken-of-the-bench"

JOB = """
subscription($id: ID!, $after: String) {
  job(id: $id, after: $after) {
    cursor kind
    job { id revision state progress { step total fraction metrics { name value } } }
  }
}
"""
"""About 283 bytes a message. `step` carries its number, the value of the one metric when it was published."""

EVENTS = """
subscription($jobs: [ID!]!, $after: String) {
  events(filter: {workloads: $jobs}, after: $after) { cursor kind at event { id type severity step: count published: message } }
}
"""
"""The stream of ours that promises each change, where `job` promises the newest state."""

JOBS = """
query($first: Int!, $before: DateTime) {
  jobs(first: $first, filter: {createdBefore: $before}) {
    nodes { id name project fleet state outcome attempt gpus revision createdAt updatedAt }
  }
}
"""

SUBMIT = """
mutation($input: SubmitJobInput!) {
  submitJob(input: $input) { status job { id state revision } }
}
"""


def same_page() -> str:
    """The body of a request that is sent again and again."""
    return json.dumps({"query": JOBS, "variables": {"first": 50, "before": "2040-01-01T00:00:00.000Z"}})


def new_page() -> str:
    """The body of a request that the generator makes another one each time."""
    return json.dumps({"query": JOBS, "variables": {"first": 50, "before": "@TIME@"}})


def submission(keys: str = "bench") -> str:
    """The body of a submission with a key of its own, which begins with `keys`."""
    spec = {
        "name": "bench",
        "command": ["python3", "train.py"],
        "pools": [{"name": "main", "series": "h200", "machines": 1, "gpusPerMachine": 1}],
    }
    code = {"files": [{"path": "train.py", "content": "print('hello')\n"}]}
    given = {"spec": spec, "code": code, "idempotencyKey": f"{keys}-@N@"}
    return json.dumps({"query": SUBMIT, "variables": {"input": given}})
