"""What a batch holds about a run: pictures, Pods, events, lines and messages."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from starforge.domain.job import Job, JobOutcome, JobState, advance, finish
from starforge.domain.logs import DRIVER, LogSource, LogState
from starforge.domain.names import JobId, RunKey
from starforge.domain.news import Reading, changed_pods, gather, heed, kubernetes_entry, pod_entries
from starforge.domain.observation import (
    EventSeen,
    FleetHeard,
    LogSeen,
    PodPhase,
    PodRole,
    PodRuntime,
    PodView,
    RawLine,
    RunPhase,
    RunSeen,
)
from starforge.domain.reason import ObjectRef, ReasonCode
from starforge.domain.timeline import Severity
from starforge.domain.wire import Exit, ProgressSaid, Refused, RefusedWhy, Started
from tests.unit.examples import AT, a_job, later

RUN = a_job().run
OTHER = RunKey(JobId("job-2"), 1)
POD = PodView("uid", "w", "n", PodRuntime.KUBERNETES, PodRole.WORKER, "train", 1, PodPhase.RUNNING, AT, AT, ready=True)
MESSAGE = '::starforge:: {"type":"exit","code":0,"signal":null,"at":1,"nonce":"n"}'


def lines(*texts: str, cursor: str, source: str = "pod/h/ray", closed: bool = False) -> LogSeen:
    raw = tuple(RawLine(f"::starforge-out 1.000000 . {text}".encode()) for text in texts)
    return LogSeen(RUN, source, raw, cursor, closed=closed)


def reading(*sources: LogSource) -> Reading:
    return Reading({source.key: source for source in sources}, trusts=lambda nonce: nonce == "n")


def read(logs: Sequence[LogSeen], *known: LogSource) -> Reading:
    found = reading(*known)
    found.read(logs, AT)
    return found


def texts(found: Reading, key: str = DRIVER) -> list[tuple[int, str]]:
    return [(line.number, line.text) for line in found.lines.get(key, [])]


# --- gathering --------------------------------------------------------------------------------------------------------


def test_news_are_by_run_and_in_order() -> None:
    first, second = RunSeen(RUN, RunPhase.RUNNING, AT), RunSeen(RUN, RunPhase.FAILED, later(1))
    other = RunSeen(OTHER, RunPhase.WAITING, AT)
    log = lines("x", cursor="1")
    found = gather([other, first, FleetHeard(AT), log, second])
    assert [news.run for news in found] == [OTHER, RUN]
    assert found[1].pictures == [first, second]
    assert found[1].newest is second
    assert found[1].logs == [log]
    assert gather([log])[0].newest is None
    assert gather([FleetHeard(AT)]) == []


# --- Pods -------------------------------------------------------------------------------------------------------------


def test_pods_that_are_new_changed_or_gone() -> None:
    still = replace(POD, uid="still")
    changed, gone = replace(POD, uid="changed"), replace(POD, uid="gone")
    after = replace(changed, phase=PodPhase.FAILED, observed_at=later(5))
    new = replace(POD, uid="new")
    seen = RunSeen(RUN, RunPhase.RUNNING, later(5), (replace(still, observed_at=later(5)), after, new))
    pairs = changed_pods([still, changed, gone], seen)
    assert pairs[:2] == [(changed, after), (None, new)]
    (before, last) = pairs[2]
    assert before == gone
    assert (last.gone_at, last.ready) == (later(5), False)
    known = [still, after, last]
    assert changed_pods([*known, new], replace(seen, at=later(6))) == []


def test_a_pod_that_comes_back_is_there_again() -> None:
    gone = replace(POD, gone_at=AT)
    assert changed_pods([gone], RunSeen(RUN, RunPhase.RUNNING, AT, (POD,))) == [(gone, POD)]


def test_what_is_told_of_pods() -> None:
    failed = replace(POD, phase=PodPhase.FAILED, node_name="node-1")
    restarted = replace(POD, restarts=2)
    pairs = [
        (None, POD),
        (POD, failed),
        (POD, restarted),
        (POD, replace(POD, ready=False)),
        (POD, replace(POD, gone_at=AT)),
    ]
    found = list(pod_entries(RUN, pairs, AT, lambda: "x"))
    assert [(entry.severity, entry.message) for entry in found] == [
        (Severity.INFO, "Pod w appeared: RUNNING."),
        (Severity.INFO, "Pod w is FAILED on node-1."),
        (Severity.WARNING, "Pod w restarted a container (2 restarts)."),
        (Severity.INFO, "Pod w is gone."),
    ]


def test_an_event_keeps_its_id_and_counts() -> None:
    seen = EventSeen(RUN, "e", ObjectRef("Pod", "w", "n", "uid"), "BackOff", True, "no", 0, AT, later(3))
    entry = kubernetes_entry(seen)
    assert (entry.id, entry.count, entry.severity) == ("event-e", 1, Severity.WARNING)
    assert entry.message == "Pod w: no"
    assert kubernetes_entry(replace(seen, count=9, message="")).message == "BackOff"


# --- logs -------------------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.lists(st.lists(st.text("xyz", max_size=3), max_size=3), max_size=5), st.integers(0, 5))
def test_a_stream_that_is_read_again_from_anywhere_gives_each_line_once(said: list[list[str]], cut: int) -> None:
    logs = [lines(*each, cursor=str(number)) for number, each in enumerate(said)]
    first = read(logs[:cut])
    again = read(logs, *first.sources.values())
    whole = texts(first) + texts(again)
    assert whole == [(number, text) for number, text in enumerate((text for each in said for text in each), 1)]


def test_bytes_and_times_are_counted() -> None:
    source = read([lines("ä", "bc", cursor="1")]).sources[DRIVER]
    assert (source.lines, source.bytes) == (2, 6)
    assert source.first_line_at == source.last_line_at is not None


def test_a_log_that_is_closed_gets_nothing_more() -> None:
    found = read([lines("one", cursor="1", closed=True), lines("two", cursor="2")])
    assert texts(found) == [(1, "one")]
    closed = read([lines("x", cursor="3")], replace(found.sources[DRIVER], state=LogState.CLOSED))
    assert texts(closed) == []
    assert closed.sources[DRIVER].lines == 1


def test_the_end_of_a_stream_gives_what_was_held() -> None:
    half = LogSeen(RUN, "pod/h/ray", (RawLine(b"::starforge-out 1.000000 + ha"),), "1")
    found = read([half])
    assert texts(found) == []
    assert texts(read([replace(half, lines=(), closed=True)], *found.sources.values())) == [(1, "ha")]


def test_a_drivers_own_stream_has_both_kinds_of_lines() -> None:
    seen = LogSeen(RUN, DRIVER, (RawLine(b"plain"), *lines("framed", cursor="1").lines), "1")
    assert [text for _, text in texts(read([seen]))] == ["plain", "framed"]


def test_messages_are_taken_out_if_they_are_trusted() -> None:
    assert [type(message) for message in read([lines(MESSAGE, cursor="1")]).messages] == [Exit]
    forged = read([lines(MESSAGE.replace('"n"', '"m"'), cursor="1")])
    assert forged.messages == []
    assert len(texts(forged)) == 1


def test_closing_what_is_not_there_is_nothing() -> None:
    found = reading()
    found.close(DRIVER, AT)
    assert (found.sources, found.touched) == ({}, set())


# --- messages ---------------------------------------------------------------------------------------------------------


def heard(job: Job, *messages: Started | Exit | Refused | ProgressSaid) -> Job:
    return heed(job, messages, later(5))[0]


def test_a_start_moves_it_and_an_exit_is_noted() -> None:
    job = heard(advance(a_job(), JobState.PENDING, AT), Started(AT), Exit(143, 15, later(4)))
    assert job.state is JobState.RUNNING
    assert (job.attempt.exit_code, job.attempt.exited_at) == (143, later(4))


def test_progress_gives_points() -> None:
    job, points = heed(a_job(), [ProgressSaid(3, 10, (("loss", 0.5), ("x", float("nan"))), AT)], later(5))
    assert [(point.name, point.value, point.step) for point in points] == [("loss", 0.5, 3), ("x", None, 3)]
    assert job.attempt.progress is not None
    assert job.attempt.progress.reported_at == AT


def test_a_refusal_ends_what_is_not_decided() -> None:
    job = heard(advance(a_job(), JobState.LAUNCHING, AT), Refused(RefusedWhy.CLAIMED, "x"))
    assert job.state is JobState.FINISHING
    assert job.attempt.reason is not None
    assert job.attempt.reason.code is ReasonCode.HEAD_LOST
    over = finish(a_job(), JobOutcome.CANCELED, None, AT)
    assert heard(over, Refused(RefusedWhy.CLAIMED, "x"), Started(AT)) == over
