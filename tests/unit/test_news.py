"""What a batch holds about a run: pictures, Pods, events, lines and messages."""

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from starforge.domain.job import Job, JobOutcome, JobState, advance, finish
from starforge.domain.logs import DRIVER, GAPS_MAX, LINE_MAX_BYTES, LineMark, LogKind, LogSource, LogState
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


def placed(data: bytes, start: int) -> RawLine:
    """A frame of output that started at a place."""
    return RawLine(b"::starforge-out 1.000000 %d-%d . %s" % (start, start + len(data) + 1, data))


def test_output_that_is_missing_is_a_gap_of_the_driver_and_where() -> None:
    raw = (RawLine(b"::starforge-out 1.000000 0-0 ^ "), placed(b"one", 0), placed(b"three", 9), placed(b"five", 20))
    found = read([LogSeen(RUN, "pod/h/ray", raw, "1", closed=True)])
    found.close(DRIVER, AT)
    source = found.sources[DRIVER]
    assert texts(found) == [(1, "one"), (2, "three"), (3, "five")]
    assert [(gap.after_line, gap.message.split(" ")[0]) for gap in source.gaps] == [(1, "5"), (2, "5")]
    assert (source.state, source.bytes) == (LogState.TRUNCATED, len("one\nthree\nfive\n"))
    assert found.sources["pod/h/ray"].state is LogState.CLOSED


def test_gaps_without_number_are_told_by_one_at_the_end() -> None:
    raw = tuple(placed(b"x", 10 * number) for number in range(3 * GAPS_MAX))
    found = read([LogSeen(RUN, "pod/h/ray", raw, "1")])
    gaps = found.sources[DRIVER].gaps
    assert len(gaps) == GAPS_MAX
    assert gaps[-1].message == "From here on lines are missing in many places."


def test_a_log_that_was_not_had_to_its_end_is_truncated_and_says_why() -> None:
    own = LogSeen(RUN, "pod/w/ray", (RawLine(b"one"),), "1", closed=True, missing="Pod w was gone.")
    source = read([own]).sources["pod/w/ray"]
    assert (source.state, [(gap.after_line, gap.message) for gap in source.gaps]) == (
        LogState.TRUNCATED,
        [(1, "Pod w was gone.")],
    )
    never = read([replace(own, lines=(), cursor="")]).sources["pod/w/ray"]
    assert (never.state, never.lines, never.gaps[0].after_line) == (LogState.TRUNCATED, 0, 0)


def test_an_interruption_is_noted_and_over_when_the_log_is_read_again() -> None:
    lost = LogSeen(RUN, "pod/w/ray", (), "", problem="the node does not answer")
    found = read([lost])
    assert found.touched == {"pod/w/ray"}
    assert (found.sources["pod/w/ray"].state, found.sources["pod/w/ray"].problem) == (
        LogState.INTERRUPTED,
        "the node does not answer",
    )
    again = read([LogSeen(RUN, "pod/w/ray", (RawLine(b"one"),), "1")], *found.sources.values())
    assert (again.sources["pod/w/ray"].state, again.sources["pod/w/ray"].problem) == (LogState.OPEN, None)
    assert texts(again, "pod/w/ray") == [(1, "one")]


def test_the_run_before_a_restart_keeps_its_output_to_itself() -> None:
    previous = replace(lines("one", cursor="1", source="pod/h/ray/previous"), previous=True)
    found = read([previous])
    assert found.sources["pod/h/ray/previous"].kind is LogKind.PREVIOUS_CONTAINER
    assert texts(found, "pod/h/ray/previous") == [(1, "one")]
    assert DRIVER not in found.sources


def test_a_line_that_is_cut_counts_one_newline() -> None:
    raw = (RawLine(b"a" * LINE_MAX_BYTES, goes_on=True), RawLine(b"b"))
    found = read([LogSeen(RUN, "pod/w/ray", raw, "1")])
    source = found.sources["pod/w/ray"]
    assert (source.lines, source.bytes) == (2, LINE_MAX_BYTES + 2)
    assert [line.marks for line in found.lines["pod/w/ray"]] == [(LineMark.CUT,), ()]


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
