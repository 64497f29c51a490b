"""What is written is what is read: to the microsecond, in UTC, whatever text it holds."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import count

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from starforge.adapters.bus.messages import decode, encode
from starforge.adapters.store import SqlStore
from starforge.domain.capsule import InlineFile
from starforge.domain.changes import (
    Aspect,
    CapsuleRecord,
    Changes,
    CodeRecord,
    IdempotencyRecord,
    InlineCode,
    LogWrite,
    Upload,
)
from starforge.domain.job import Attempt
from starforge.domain.logs import LogSource
from starforge.domain.names import Digest, JobId, RunKey
from starforge.domain.observation import (
    ContainerRole,
    ContainerState,
    ContainerView,
    PodPhase,
    PodRole,
    PodRuntime,
    PodView,
)
from starforge.domain.progress import MetricPoint, NonFinite
from starforge.domain.spec import JobSpec
from starforge.domain.timeline import Entry
from tests.contract.store.examples import AT, a_job, a_spec, after, an_entry, any_attempt, anything, save, saved

ANY = settings(
    max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate, Phase.shrink]
)
_numbers = count(1)


@ANY
@given(attempt=any_attempt(), spec=anything(JobSpec), at=st.datetimes(datetime(1970, 1, 1), timezones=st.just(UTC)))
def test_a_job_with_any_spec_and_attempt(store: SqlStore, attempt: Attempt, spec: JobSpec, at: datetime) -> None:
    unique = {label.key: label for label in spec.labels}
    spec = replace(spec, labels=tuple(unique.values()), pools=spec.pools[:1])
    job = replace(a_job(next(_numbers), a_spec()), spec=spec, attempt=attempt, created_at=at, updated_at=at)
    save(store, job)
    assert store.job(job.id) == replace(job, revision=1)
    assert store.attempts([job.id]) == {job.id: [attempt]}


@ANY
@given(attempt=any_attempt(), spec=anything(JobSpec))
def test_a_job_comes_with_its_row_as_the_table_gives_it(store: SqlStore, attempt: Attempt, spec: JobSpec) -> None:
    unique = {label.key: label for label in spec.labels}
    spec = replace(spec, labels=tuple(unique.values()), pools=spec.pools[:1])
    job = replace(a_job(next(_numbers), a_spec()), spec=spec, attempt=attempt)
    changes = Changes()
    changes.job(job, Aspect.STATE)
    (row,) = store.commit(changes, at=AT)
    (heard,) = decode(encode([row]))
    assert row.now is not None
    assert heard.now is not None
    assert row.now() == heard.now() == store.job(job.id)


@ANY
@given(entry=anything(Entry))
def test_any_entry(store: SqlStore, entry: Entry) -> None:
    job = saved(store, next(_numbers))
    entry = replace(entry, id=f"entry-{job.id}", run=entry.run and job.run)
    store.commit(Changes(entries=[entry]), at=AT)
    assert store.entries([entry.id, "unknown"]) == {entry.id: entry}


@ANY
@given(pod=anything(PodView))
def test_any_pod(store: SqlStore, pod: PodView) -> None:
    job = saved(store, next(_numbers))
    store.commit(Changes(pods=[(job.run, pod)]), at=AT)
    assert store.pods([job.run]) == {job.run: [pod]}


@ANY
@given(source=anything(LogSource))
def test_any_log_source(store: SqlStore, source: LogSource) -> None:
    job = saved(store, next(_numbers))
    source = replace(source, run=job.run, lines=0)
    store.commit(Changes(logs=[LogWrite(source)]), at=AT)
    assert store.log_sources([job.run]) == {job.run: [source]}


@ANY
@given(points=st.lists(anything(MetricPoint), max_size=6))
def test_any_metric_points(store: SqlStore, points: list[MetricPoint]) -> None:
    job = saved(store, next(_numbers))
    store.commit(Changes(metrics=[(job.run, point) for point in points]), at=AT)
    assert store.metric_points(job.run, None, None, None) == points
    names = list(dict.fromkeys(point.name for point in points))
    assert store.metric_names([job.run]).get(job.run, []) == names


def test_times_come_back_in_utc(store: SqlStore) -> None:
    job = saved(store)
    found = store.job(job.id)
    assert found is not None
    assert found.created_at == AT
    assert (found.created_at.utcoffset(), found.attempt.created_at.utcoffset()) == (UTC.utcoffset(None),) * 2


def test_every_attempt_is_kept_and_the_job_shows_the_newest(store: SqlStore) -> None:
    first = saved(store)
    second = replace(first, attempt=replace(first.attempt, number=2, created_at=after(5)))
    save(store, second)
    assert store.attempts([first.id]) == {first.id: [first.attempt, second.attempt]}
    assert store.jobs_by_id([first.id, JobId("none")]) == {first.id: replace(second, revision=2)}
    assert store.job(JobId("none")) is None


def test_pods_are_replaced_by_uid_and_come_in_the_order_of_their_creation(store: SqlStore) -> None:
    job, other = saved(store, 1), saved(store, 2)
    container = ContainerView("ray", ContainerRole.MAIN, "image", ContainerState.RUNNING)
    old = PodView(
        "u2",
        "b",
        None,
        PodRuntime.PROCESS,
        PodRole.HEAD,
        "pool",
        0,
        PodPhase.PENDING,
        after(1),
        AT,
        containers=(container,),
    )
    older = replace(old, uid="u1", name="a", created_at=AT)
    store.commit(Changes(pods=[(job.run, old), (job.run, older), (other.run, old)]), at=AT)
    newer = replace(old, phase=PodPhase.FAILED, gone_at=after(9))
    store.commit(Changes(pods=[(job.run, newer)]), at=AT)
    assert store.pods([job.run, other.run, RunKey(job.id, 7)]) == {job.run: [older, newer], other.run: [old]}


def test_an_entry_written_again_keeps_when_it_was_first_seen_and_where_it_stands(store: SqlStore) -> None:
    run = saved(store).run
    entry = an_entry("e", run, count=1)
    store.commit(Changes(entries=[entry, an_entry("f", run)]), at=AT)
    again = replace(entry, first_at=after(5), last_at=after(9), count=4, message="Again.")
    rows = store.commit(Changes(entries=[again]), at=AT)
    assert [row.subject for row in rows] == ["e"]
    assert store.entries(["e"])["e"] == replace(again, first_at=entry.first_at)


def test_metrics_by_name_and_step(store: SqlStore) -> None:
    run = saved(store).run
    points = [MetricPoint(name, float(step), after(step), step) for step in range(4) for name in ("loss", "accuracy")]
    points.append(MetricPoint("loss", None, after(9), None, NonFinite.NAN))
    store.commit(Changes(metrics=[(run, point) for point in points[:3]]), at=AT)
    store.commit(Changes(metrics=[(run, point) for point in points[3:]]), at=AT)
    assert store.metric_names([run]) == {run: ["loss", "accuracy"]}
    assert store.metric_points(run, ["loss"], 1, 2) == [points[2], points[4]]
    assert store.metric_points(run, ["accuracy", "none"], 3, None) == [points[7]]
    assert store.metric_points(run, [], None, None) == []


def test_code_and_capsules_are_replaced_by_digest(store: SqlStore) -> None:
    code, capsule = Digest("c" * 64), Digest("d" * 64)
    record = CodeRecord(code, 3, 2**40, "t")
    upload = Upload(code, "t", 2**40, 3, AT)
    built = CapsuleRecord(capsule, code, 5, 2**40, "t", "r", AT)
    store.commit(Changes(code=[record], uploads=[upload], capsules=[built]), at=AT)
    newer = replace(upload, requested_at=after(5))
    assert store.commit(Changes(uploads=[newer]), at=AT) == []
    assert (store.code(code), store.upload(code)) == (record, newer)
    assert store.capsules([capsule, Digest("none")]) == {capsule: built}
    assert (store.code(capsule), store.upload(capsule)) == (None, None)


def test_inline_code_is_kept_until_it_is_dropped(store: SqlStore) -> None:
    job = a_job()
    files = (InlineFile("train.py", "print('ä')\n", executable=True), InlineFile("empty", ""))
    changes = Changes(inline=[InlineCode(job.id, files)])
    changes.job(job, Aspect.STATE)
    store.commit(changes, at=AT)
    assert tuple(store.inline_code(job.id) or ()) == files
    store.commit(Changes(drop_inline=[job.id]), at=AT)
    assert store.inline_code(job.id) is None


def test_an_idempotency_key_is_its_own_per_project_and_mutation(store: SqlStore) -> None:
    job = saved(store)
    record = IdempotencyRecord("vision", "submitJob", "k", "sha", job.id, 1, AT)
    other = replace(record, mutation="retryJob")
    store.commit(Changes(idempotency=[record, other]), at=AT)
    assert store.idempotency("vision", "submitJob", "k") == record
    assert store.idempotency("vision", "retryJob", "k") == other
    assert store.idempotency("audio", "submitJob", "k") is None


def test_text_that_databases_cannot_hold_is_marked_as_such(store: SqlStore) -> None:
    job = a_job(1, replace(a_spec(), description="nul \0 and \\u0000 and \\\0"))
    save(store, job)
    store.commit(Changes(entries=[an_entry("e", job.run, message="a\0b\ud800c")]), at=AT)
    found = store.job(job.id)
    assert found is not None
    assert found.spec.description == "nul \ufffd and \\u0000 and \\\ufffd"
    assert store.entries(["e"])["e"].message == "a\ufffdb?c"
