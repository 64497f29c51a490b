"""Jobs, Pods and drafts for tests of the domain."""

from datetime import UTC, datetime, timedelta

from starforge.domain.job import Actor, ActorKind, Job, new_attempt
from starforge.domain.names import JobId
from starforge.domain.spec import Deadlines, FleetDefaults, JobSpec, PoolDraft, SpecDraft
from starforge.domain.spec_rules import freeze

AT = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
ANN = Actor("ann", ActorKind.USER)
DEFAULTS = FleetDefaults("home", "example/train:1", 2, "4Gi", "1Gi", Deadlines(600, 1800, 3600), 30)
DRAFT = SpecDraft("digits", ("python3", "train.py"), (PoolDraft("train", "h200", 1, 1),))


def later(seconds: float) -> datetime:
    return AT + timedelta(seconds=seconds)


def a_spec() -> JobSpec:
    return freeze(DRAFT, DEFAULTS)


def a_job(spec: JobSpec | None = None) -> Job:
    spec = spec or a_spec()
    return Job(JobId("job-1"), spec, AT, ANN, AT, new_attempt(spec, 1, ANN, AT))
