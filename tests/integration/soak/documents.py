"""What the subscribers ask, and what a script asks of the jobs that they follow."""

from dataclasses import dataclass, field
from typing import Any

EVENTS = """
subscription($filter: EventFilter, $after: String) {
  events(filter: $filter, after: $after) { cursor kind event { id } }
}
"""
ALL_EVENTS = """
subscription($filter: EventFilter, $after: String) {
  events(filter: $filter, after: $after) { cursor kind at event { id type severity message count firstAt } }
}
"""
LOGS = """
subscription($id: ID!, $after: String, $tail: Int) {
  jobLogs(id: $id, after: $after, tail: $tail) { cursor kind end lines { number text } }
}
"""
JOB = """
subscription($id: ID!, $after: String) {
  job(id: $id, after: $after) { cursor kind jobId job { id revision state progress { step } } }
}
"""
JOBS = """
subscription($filter: JobFilter, $after: String) {
  jobs(filter: $filter, after: $after) { cursor kind jobId job { id revision state } }
}
"""

HEAD = "{ feed { cursor } }"
JOB_NOW = "query($id: ID!) { job(id: $id) { id revision ended } }"
JOBS_NOW = """
query($filter: JobFilter, $after: String) {
  jobs(filter: $filter, first: 100, after: $after) { pageInfo { hasNextPage endCursor } nodes { id revision } }
}
"""
EVENTS_NOW = """
query($filter: EventFilter, $after: String) {
  events(filter: $filter, first: 100, after: $after) { pageInfo { hasNextPage endCursor } nodes { id } }
}
"""
LOGS_NOW = """
query($id: ID!, $after: String) {
  job(id: $id) { logs(first: 1000, after: $after) { pageInfo { hasNextPage endCursor } nodes { number text } } }
}
"""
LOGS_STATE = "query($id: ID!) { job(id: $id) { ended logSources { key state } } }"
CANCEL = "mutation($id: ID!) { cancelJob(id: $id) { userErrors { code message } } }"


@dataclass(frozen=True)
class Asked:
    """One subscription, as a client asks it the first time; `after` is a cursor that it has from a query."""

    root: str
    query: str
    variables: dict[str, Any] = field(default_factory=dict)
    after: str | None = None

    @property
    def name(self) -> str:
        return f"{self.root} {self.variables or ''}"

    @property
    def has_snapshot(self) -> bool:
        return self.root in ("job", "jobs")

    def resumed(self, cursor: str | None) -> dict[str, Any]:
        """The variables after `cursor`."""
        if cursor is None:
            return self.variables
        return {**{name: value for name, value in self.variables.items() if name != "tail"}, "after": cursor}

    def completes(self, last: dict[str, Any] | None) -> bool:
        """Whether it may be complete after its last step: a log ends, the others never do."""
        return self.root == "jobLogs" and last is not None and bool(last["end"])
