"""What a fleet told about one run since the last look, and what it means for pods, logs and progress. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from starforge.domain.job import Attempt, Job, JobOutcome, JobState, advance, conclude, finish
from starforge.domain.logs import DRIVER, GAPS_MAX, LogGap, LogKind, LogLine, LogSource, LogState, text_of
from starforge.domain.losses import out_of_memory
from starforge.domain.names import RunKey
from starforge.domain.observation import EventSeen, LogSeen, PodView, RunSeen, Seen
from starforge.domain.progress import MetricPoint, metric_point, report
from starforge.domain.reason import EvidenceSource
from starforge.domain.refusal import refusal
from starforge.domain.text_lines import TextLine
from starforge.domain.timeline import Entry, KubernetesSeen, PodChanged, Severity
from starforge.domain.unframing import FrameParser, Parsed
from starforge.domain.wire import Exit, Message, ProgressSaid, Started


@dataclass
class News:
    """Everything new about a run: its pictures, events and log lines, each in order."""

    run: RunKey
    pictures: list[RunSeen] = field(default_factory=list)
    events: list[EventSeen] = field(default_factory=list)
    logs: list[LogSeen] = field(default_factory=list)

    @property
    def newest(self) -> RunSeen | None:
        return self.pictures[-1] if self.pictures else None


def gather(batch: Iterable[Seen]) -> list[News]:
    """The news of a batch by run, in the order in which runs appear."""
    news: dict[RunKey, News] = {}
    for seen in batch:
        if isinstance(seen, RunSeen):
            news.setdefault(seen.run, News(seen.run)).pictures.append(seen)
        elif isinstance(seen, EventSeen):
            news.setdefault(seen.run, News(seen.run)).events.append(seen)
        elif isinstance(seen, LogSeen):
            news.setdefault(seen.run, News(seen.run)).logs.append(seen)
    return list(news.values())


# --- Pods -------------------------------------------------------------------------------------------------------------


def changed_pods(known: Sequence[PodView], seen: RunSeen) -> list[tuple[PodView | None, PodView]]:
    """(before, after) of each Pod that is new, changed or gone."""
    before = {pod.uid: pod for pod in known}
    pairs = [(before.get(pod.uid), pod) for pod in seen.pods]
    alive = {pod.uid for pod in seen.pods}
    last = {pod.uid: pod for pod in seen.gone}
    gone = [
        (pod, replace(last.get(pod.uid, pod), gone_at=seen.at, ready=False, observed_at=seen.at))
        for pod in known
        if pod.uid not in alive and pod.gone_at is None
    ]
    return [(old, new) for old, new in (*pairs, *gone) if old is None or _differs(old, new)]


def _differs(old: PodView, new: PodView) -> bool:
    return replace(old, observed_at=new.observed_at) != new


def pod_entries(
    run: RunKey, pairs: Iterable[tuple[PodView | None, PodView]], at: datetime, new_id: Callable[[], str]
) -> Iterator[Entry]:
    """An entry for each Pod that appeared, changed phase, restarted or went."""
    for old, new in pairs:
        said = _pod_sentence(old, new)
        if said:
            severity = Severity.WARNING if new.restarts > (old.restarts if old else 0) else Severity.INFO
            yield Entry(f"event-{new_id()}", run, severity, said, at, at, PodChanged(new.uid, new.phase))


def _pod_sentence(old: PodView | None, new: PodView) -> str | None:
    where = f" on {new.node_name}" if new.node_name else ""
    if new.gone_at and not (old and old.gone_at):
        return f"Pod {new.name} is gone."
    if old is None:
        return f"Pod {new.name} appeared{where}: {new.phase}."
    if new.restarts > old.restarts:
        return f"Pod {new.name} restarted a container ({new.restarts} restarts)."
    return f"Pod {new.name} is {new.phase}{where}." if new.phase is not old.phase else None


# --- Kubernetes Events ------------------------------------------------------------------------------------------------


def kubernetes_entry(event: EventSeen) -> Entry:
    """The timeline's entry of a Kubernetes Event; a repeat of it keeps the id."""
    pod = event.object.uid if event.object.kind == "Pod" else None
    detail = KubernetesSeen(event.reason, event.warning, event.object, event.reported_by, pod)
    severity = Severity.WARNING if event.warning else Severity.INFO
    message = f"{event.object.kind} {event.object.name}: {event.message}" if event.message else event.reason
    return Entry(
        f"event-{event.uid}", event.run, severity, message, event.first_at, event.last_at, detail, max(1, event.count)
    )


# --- logs -------------------------------------------------------------------------------------------------------------


@dataclass
class Reading:
    """The logs of a run while a batch is read: sources by key, lines to append, messages to the platform."""

    sources: dict[str, LogSource]
    trusts: Callable[[str], bool]
    lines: dict[str, list[LogLine]] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)
    at: datetime | None = None

    def read(self, logs: Sequence[LogSeen], at: datetime) -> None:
        """Read lines of streams, without those that were read before: a batch may come twice."""
        self.at = at
        known = {key: source.cursor for key, source in self.sources.items()}
        last = {seen.source: index for index, seen in enumerate(logs) if known.get(seen.source) == seen.cursor}
        for index, seen in enumerate(logs):
            self._take(seen, at, new=index > last.get(seen.source, -1))

    def _take(self, seen: LogSeen, at: datetime, *, new: bool) -> None:
        source = self.sources.get(seen.source) or _new_source(seen)
        if source.is_over:
            return
        if new:
            parser = FrameParser(trusts=self.trusts, carry=source.carry)
            parsed = parser.feed(seen.lines)
            self.sources[seen.source] = replace(source, cursor=seen.cursor, carry=parser.carry)
            self.touched.add(seen.source)
            self._keep(source, parsed)
        if seen.problem != source.problem:
            state = LogState.INTERRUPTED if seen.problem else LogState.OPEN
            self.sources[seen.source] = replace(self.sources[seen.source], state=state, problem=seen.problem)
            self.touched.add(seen.source)
        if seen.closed:
            self.close(seen.source, at, missing=seen.missing)

    def close(self, key: str, at: datetime, *, missing: str | None = None) -> None:
        """Note that nothing more comes of a log, and why it is not whole if it isn't.

        What is held of an unfinished line counts as a line.
        """
        source = self.sources.get(key)
        if source is None or source.is_over:
            return
        self._keep(source, FrameParser(trusts=self.trusts, carry=source.carry).end())
        source = self.sources[key]
        if missing:
            source = with_gap(source, LogGap(source.lines, missing))
        state = LogState.TRUNCATED if source.gaps else LogState.CLOSED
        self.sources[key] = replace(source, state=state, closed_at=at, carry=None, problem=None)
        self.touched.add(key)

    def _keep(self, source: LogSource, parsed: Parsed) -> None:
        if source.kind is LogKind.PREVIOUS_CONTAINER:
            return self._append(source.key, (*parsed.container, *parsed.lines), source.run)
        if source.key == DRIVER:
            self._append(DRIVER, (*parsed.container, *parsed.lines), source.run)
        else:
            self._append(source.key, parsed.container, source.run)
            self._append_user(parsed, source.run)
        self.messages += parsed.messages

    def _append_user(self, parsed: Parsed, run: RunKey) -> None:
        start = 0
        for missing in parsed.missing:
            self._append(DRIVER, parsed.lines[start : missing.after], run)
            self._miss(_missing_sentence(missing.bytes), run)
            start = missing.after
        self._append(DRIVER, parsed.lines[start:], run)

    def _miss(self, message: str, run: RunKey) -> None:
        source = self.sources.get(DRIVER) or LogSource(run, DRIVER, LogKind.DRIVER)
        if not source.is_over:
            self.sources[DRIVER] = with_gap(source, LogGap(source.lines, message))
            self.touched.add(DRIVER)

    def _append(self, key: str, lines: Sequence[TextLine], run: RunKey) -> None:
        source = self.sources.get(key) or LogSource(run, DRIVER, LogKind.DRIVER)
        if not lines or source.is_over:
            return  # the runner said its last word; what writes to the head's log after it is no driver
        numbered = [
            LogLine(source.lines + index, line.text, line.at, line.marks) for index, line in enumerate(lines, 1)
        ]
        self.lines.setdefault(key, []).extend(numbered)
        self.touched.add(key)
        self.sources[key] = replace(
            source,
            lines=source.lines + len(numbered),
            bytes=source.bytes + len(text_of(numbered)),
            first_line_at=source.first_line_at or numbered[0].at,
            last_line_at=numbered[-1].at or source.last_line_at,
            read_at=self.at,
        )


def with_gap(source: LogSource, gap: LogGap) -> LogSource:
    """The source with one more gap; after GAPS_MAX of them the last one stands for all that follow."""
    if len(source.gaps) < GAPS_MAX:
        return replace(source, gaps=(*source.gaps, gap))
    last = replace(source.gaps[-1], message="From here on lines are missing in many places.", lines=None)
    return replace(source, gaps=(*source.gaps[:-1], last))


def _missing_sentence(size: int | None) -> str:
    if size is None:
        return "The beginning of the output is missing: neither the container's log nor Ray's own file has it."
    return f"{size} bytes of output are missing: the container's log has lost them, and Ray's own file can't be had."


def _new_source(seen: LogSeen) -> LogSource:
    return LogSource(seen.run, seen.source, _kind(seen), pod=seen.pod, container=seen.container)


def _kind(seen: LogSeen) -> LogKind:
    if seen.source == DRIVER:
        return LogKind.DRIVER
    if seen.previous:
        return LogKind.PREVIOUS_CONTAINER
    return LogKind.INIT_CONTAINER if seen.init else LogKind.CONTAINER


# --- messages of the runner and of the code ---------------------------------------------------------------------------


def heed(job: Job, messages: Sequence[Message], at: datetime) -> tuple[Job, list[MetricPoint]]:
    """The job after what its runner and its code said, and the metric points in it."""
    points: list[MetricPoint] = []
    for message in messages:
        if isinstance(message, ProgressSaid):
            attempt, new = _progressed(job.attempt, message, at)
            points += new
            job = job.with_attempt(attempt)
        elif isinstance(message, Started):
            job = advance(job, JobState.RUNNING, at)
        elif isinstance(message, Exit):
            job = _exited(job, message, at)
        elif not job.decided and job.attempt.exited_at is None:
            why = refusal(message.why, message.message, EvidenceSource.LOG, at)
            job = conclude(advance(job, JobState.PENDING, at), JobOutcome.FAILED, why, at)
    return job, points


def _exited(job: Job, message: Exit, at: datetime) -> Job:
    """The job whose command ended; one that was asked to end is at its end, however long Ray takes to notice."""
    lost = job.attempt.lost or (out_of_memory(message.code, at) if message.out_of_memory else None)
    job = job.with_attempt(replace(job.attempt, exit_code=message.code, exited_at=message.at, lost=lost))
    ending = job.attempt.ending
    return job if ending is None or job.decided else finish(job, ending.outcome, ending.reason, at)


def _progressed(attempt: Attempt, said: ProgressSaid, at: datetime) -> tuple[Attempt, list[MetricPoint]]:
    when = said.at or at
    points = [metric_point(name, value, when, said.step) for name, value in said.metrics]
    progress = report(attempt.progress, said.step, said.total, tuple(points), when)
    return replace(attempt, progress=progress), points
