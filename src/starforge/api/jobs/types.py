"""Jobs and attempts."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Annotated, ClassVar, Self

import strawberry
from strawberry import Info, argument

from starforge.api import ids
from starforge.api.capsules.types import Capsule
from starforge.api.context import of_info
from starforge.api.cursors import row_cursor
from starforge.api.directives import cost, list_size, page_size
from starforge.api.enums import MetricBucket
from starforge.api.fleets import Placement, placement
from starforge.api.interfaces import LazyEvents, Node, Workload, workload_events
from starforge.api.jobs.cluster import Pod, PodCounts, Pool, RayJob, Teardown
from starforge.api.jobs.diff import Files, JobDiff
from starforge.api.jobs.metrics import metric_series
from starforge.api.jobs.progress import MetricSeries, Progress
from starforge.api.jobs.queue import QueuePlace, queue_place
from starforge.api.jobs.spec import JobSpec
from starforge.api.logs.pages import log_page
from starforge.api.logs.search import LogMatchConnection, Wanted, search_page
from starforge.api.logs.types import LogArchive, LogLineConnection, LogSource
from starforge.api.mirror import Made, Mirror, mirror
from starforge.api.paging import PageArgs, page_info
from starforge.api.scalars import BigInt
from starforge.api.values import Actor, Cancellation, Clock, Label, Observation, PageInfo, Reason, StateSpan
from starforge.domain import job as domain
from starforge.domain.actions.retry import can_be_retried
from starforge.domain.job import JobOutcome, JobState
from starforge.domain.names import JobId, RunKey
from starforge.domain.observation import PodPhase
from starforge.domain.queries import Page
from starforge.domain.rights import Caller, Permission
from starforge.domain.timeline import Action

TOTAL_COUNT_MAX = 10_000


@strawberry.type(description="One run of a job, on a Ray cluster of its own.")
class Attempt(Node, Mirror):
    job_id: strawberry.Private[JobId]
    number: int = strawberry.field(description="Number within the job, from 1.")

    @strawberry.field(description="The job it belongs to.")
    async def job(self, info: Info) -> Annotated["Job", strawberry.lazy("starforge.api.jobs.types")]:
        return Job.of(await of_info(info).job(self.job_id))

    state: JobState = strawberry.field(description="Where this attempt is, or ended.")
    outcome: JobOutcome | None = strawberry.field(description="How this attempt ended; null before FINISHING.")
    exit_code: int | None = strawberry.field(
        description=("Exit code of the user's command, or null if it has not ended or was never started.")
    )
    reason: Reason | None = strawberry.field(
        description=("What holds it, or why it ended; null when there is nothing to explain.")
    )
    requested_by: Actor = strawberry.field(description="Who asked for this attempt.")
    created_at: datetime = strawberry.field(description="When this attempt was asked for.")
    launched_at: datetime | None = strawberry.field(
        description=("When its RayJob, or its like on another fleet, was created; null before.")
    )
    started_at: datetime | None = strawberry.field(
        description=("When it became RUNNING; null before and if it never did.")
    )
    finished_at: datetime | None = strawberry.field(description="When its outcome was known; null before.")
    logs_archived_at: datetime | None = strawberry.field(
        description=("When its logs were stored and verified; null before.")
    )
    released_at: datetime | None = strawberry.field(
        description=("When the last of its cluster objects was seen to be gone; null until then.")
    )
    ended_at: datetime | None = strawberry.field(description="When it reached its end state; null before.")
    clocks: list[Clock] = strawberry.field(description="Its clocks.")

    @strawberry.field(description="Where it was put; null until it was.")
    def placement(self, info: Info) -> Placement | None:
        return placement(of_info(info), self.mirrored)

    ray_job: RayJob | None = strawberry.field(
        description=("Its RayJob as last seen; null before one is made and on fleets that make none.")
    )
    log_archive: LogArchive | None = strawberry.field(
        description=("Its stored logs; null before the first line is kept.")
    )
    teardown: Teardown | None = strawberry.field(
        description=("How far removal of its cluster objects is; null before it begins.")
    )

    made: ClassVar[Made] = {
        "id": lambda this: ids.attempt(RunKey(this.job_id, this.mirrored.number)),
        "reason": lambda this: Reason.maybe(this.mirrored.reason),
        "requested_by": lambda this: Actor.of(this.mirrored.requested_by),
        "clocks": lambda this: [Clock.of(one) for one in this.mirrored.clocks],
        "ray_job": lambda this: RayJob.of(this.mirrored.rayjob),
        "log_archive": lambda this: LogArchive.of(this.mirrored.archive),
        "teardown": lambda this: Teardown.of(this.mirrored.teardown),
    }

    @classmethod
    def of(cls, row: domain.Attempt, job_id: JobId) -> Self:
        return mirror(cls, row, job_id=job_id)


def _observed_at(self: "Job", info: Info) -> datetime | None:
    return of_info(info).observed_at(self.mirrored, self.row.spec.fleet)


@strawberry.type(
    description=("A training job: a spec and code, run in attempts, each on an ephemeral Ray cluster of its own.")
)
class Job(Workload, Mirror):
    row: strawberry.Private[domain.Job]
    gpus: int = strawberry.field(description="GPUs all its pools ask for together, logical ones included.")
    ended: bool = strawberry.field(description="Whether it is in an end state.")
    released_at: datetime | None = strawberry.field(
        description="When the last of the current attempt's cluster objects was seen to be gone; null until then."
    )
    observed_at: datetime | None = strawberry.field(
        description="When the cluster last told us about it; null until it did.", resolver=_observed_at
    )
    clocks: list[Clock] = strawberry.field(description="Its clocks with their due times: queue, pre-running, active.")
    events: LazyEvents = strawberry.field(
        description="Its timeline: our events and Kubernetes Events in one, oldest first; take `last` for the newest.",
        resolver=workload_events,
        directives=[page_size()],
    )
    priority: int = strawberry.field(description="Priority, -100 to 100, higher first.")
    state: JobState = strawberry.field(
        description=("Where the current attempt is; it leaves an end state only when the job is retried.")
    )
    outcome: JobOutcome | None = strawberry.field(
        description=("How the current attempt ended, shown from FINISHING on; null before.")
    )
    exit_code: int | None = strawberry.field(
        description=(
            "Exit code of the user's command in the current attempt, or null if it has not ended or was never started."
        )
    )
    spec: JobSpec = strawberry.field(
        description=(
            "The spec as frozen at submit, with every default filled in; its fields match JobSpecInput, so a copy can"
            " be submitted again."
        )
    )

    @strawberry.field(description=("The package that runs; null until PACKAGING is done."))
    async def capsule(self, info: Info) -> Capsule | None:
        digest = self.row.capsule
        record = await of_info(info).loaders.capsules.load(digest) if digest else None
        return Capsule.of(record) if record else None

    attempt: int = strawberry.field(description="Number of the current attempt, from 1.")

    @strawberry.field(description="All attempts, oldest first; at most 100.", directives=[list_size(3)])
    async def attempts(self, info: Info) -> list[Attempt]:
        return [Attempt.of(row, self.row.id) for row in await of_info(info).loaders.attempts.load(self.row.id)]

    pools: list[Pool] = strawberry.field(
        description=("Its pools with how far their machines are, the primary pool first."), directives=[list_size(3)]
    )

    @strawberry.field(
        description=("How many Pods of the current attempt are in which phase, cheap enough for a table.")
    )
    async def pod_counts(self, info: Info) -> PodCounts:
        pods = await of_info(info).loaders.pods.load(self.row.run)
        return PodCounts.of(self.row.spec.machines, pods)

    progress: Progress | None = strawberry.field(
        description=(
            "What the code last reported about itself in the current attempt; null until it reported something."
        )
    )

    @strawberry.field(description=("Names of every metric reported so far, in order of first report; at most 1,000."))
    async def metric_names(
        self,
        info: Info,
        attempt: Annotated[int | None, argument("Number of the attempt, from 1; the current one if left out.")] = None,
    ) -> list[str]:
        return await of_info(info).metric_names(self._run(attempt))

    @strawberry.field(
        description="Metric curves for a chart, thinned to what a chart can show.", directives=[cost(10), list_size(20)]
    )
    async def metrics(
        self,
        info: Info,
        names: Annotated[
            list[str] | None, argument("Which metrics, 20 at most; the first 20 by name if left out.")
        ] = None,
        attempt: Annotated[int | None, argument("Number of the attempt, from 1; the current one if left out.")] = None,
        from_step: Annotated[BigInt | None, argument("Only points from this step on.")] = None,
        to_step: Annotated[BigInt | None, argument("Only points up to this step.")] = None,
        max_points: Annotated[
            int,
            argument(
                "Most points per curve, 2 to 2,000; neighbouring points are merged into that many buckets, and the "
                "newest point is always kept."
            ),
        ] = 500,
        bucket: Annotated[
            MetricBucket,
            argument(
                "How a bucket's points become one value; their minimum and maximum are given besides, so that no "
                "spike is lost."
            ),
        ] = MetricBucket.MEAN,
    ) -> list[MetricSeries]:
        run = self._run(attempt)
        return await metric_series(of_info(info), run, names, (from_step, to_step), max_points, bucket)

    @strawberry.field(
        description=(
            "The states it went through in all attempts, oldest first, for a timeline with durations; at most 1,000."
        ),
        directives=[list_size(10)],
    )
    async def history(self, info: Info) -> list[StateSpan]:
        attempts = await of_info(info).loaders.attempts.load(self.row.id)
        return [StateSpan.of(span, row.number) for row in attempts for span in row.spans][:1000]

    ray_job_name: str | None = strawberry.field(
        description=("Name of the RayJob of the current attempt; null before one is made and on fleets that make none.")
    )
    teardown: Teardown | None = strawberry.field(
        description=("How far removal of the current attempt's cluster objects is; null before it begins.")
    )
    log_archive: LogArchive | None = strawberry.field(
        description=("The stored logs of the current attempt; null before the first line is kept.")
    )
    cancellation: Cancellation | None = strawberry.field(
        description=("Who asked for it to be canceled, and when; null if nobody did in the current attempt.")
    )
    updated_at: datetime = strawberry.field(description="When anything about it last changed.")
    launched_at: datetime | None = strawberry.field(
        description=("When the current attempt's RayJob, or its like on another fleet, was created; null before.")
    )
    started_at: datetime | None = strawberry.field(
        description=("When the current attempt became RUNNING; null before and if it never did.")
    )
    finished_at: datetime | None = strawberry.field(
        description=("When the current attempt's outcome was known and FINISHING began; null before.")
    )
    logs_archived_at: datetime | None = strawberry.field(
        description=("When the current attempt's logs were stored and verified; null before.")
    )
    ended_at: datetime | None = strawberry.field(
        description=("When the current attempt reached its end state; null before.")
    )

    @strawberry.field(
        description=(
            "Lines of one log, the same whether live or archived; null, with an error, when the store that holds them"
            " can't be asked."
        ),
        directives=[cost(10), page_size()],
    )
    async def logs(
        self,
        info: Info,
        attempt: Annotated[int | None, argument("Number of the attempt, from 1; the current one if left out.")] = None,
        source: Annotated[str | None, argument("Key of a LogSource; `driver` if left out.")] = None,
        from_line: Annotated[
            int | None,
            argument(
                "Line number to start from, for a jump into a long log; with `first`, and not together with a cursor."
            ),
        ] = None,
        plain: Annotated[bool, argument("True to leave terminal escape sequences out of the text.")] = False,
        first: Annotated[int | None, argument("Return the first this many, 1 to 1,000.")] = None,
        after: Annotated[str | None, argument("Continue after this cursor.")] = None,
        last: Annotated[int | None, argument("Return the last this many, 1 to 1,000.")] = None,
        before: Annotated[str | None, argument("Stop before this cursor.")] = None,
    ) -> LogLineConnection | None:
        page = PageArgs(first, after, last, before)
        return await log_page(of_info(info), self._run(attempt), source or "driver", page, from_line, plain=plain)

    @strawberry.field(
        description=(
            "Lines of one log that contain a text or match an expression, oldest first; null, with an error, when the "
            "store that holds them can't be asked."
        ),
        directives=[cost(50), page_size("first")],
    )
    async def log_search(
        self,
        info: Info,
        query: Annotated[str, argument("Text to find, or an expression if `regex`; 1 to 256 characters.")],
        regex: Annotated[bool, argument("True to read the query as an RE2 regular expression.")] = False,
        case_sensitive: Annotated[bool, argument("True to tell upper from lower case.")] = False,
        attempt: Annotated[int | None, argument("Number of the attempt, from 1; the current one if left out.")] = None,
        source: Annotated[str | None, argument("Key of a LogSource; `driver` if left out.")] = None,
        first: Annotated[int | None, argument("Return the first this many matches, 1 to 100.")] = None,
        after: Annotated[str | None, argument("Continue after this cursor.")] = None,
    ) -> LogMatchConnection | None:
        wanted = Wanted(query, regex=regex, case_sensitive=case_sensitive)
        run = self._run(attempt)
        return await search_page(of_info(info), run, source or "driver", wanted, first=first, after=after)

    @strawberry.field(
        description="What differs between this job and another one, or null if the caller may not see the other.",
        directives=[cost(20)],
    )
    async def diff(
        self,
        info: Info,
        other: Annotated[
            strawberry.ID, argument("Opaque id of the other job, which is taken as the right, newer side.")
        ],
    ) -> JobDiff | None:
        context = of_info(info)
        right = await context.loaders.jobs.load(JobId(str(other)))
        if right is None or not context.caller.sees(right.spec.project):
            return None
        return JobDiff(differing=Files(context, self.row, right), left=self, right=Job.of(right))

    @strawberry.field(description="Its place in the queue; null when it does not queue.")
    def queue(self, info: Info) -> QueuePlace | None:
        return queue_place(self.row, of_info(info).ports.fleet.name)

    @strawberry.field(description="Where the current attempt was put; null until it was.")
    def placement(self, info: Info) -> Placement | None:
        return placement(of_info(info), self.row.attempt)

    @strawberry.field(  # type: ignore[misc]  # the interface has it without arguments
        description="Address of its page in the dashboard, or null if the installation has no public address."
    )
    def web_url(self, info: Info) -> str | None:
        base = of_info(info).services.web_url
        return f"{base.rstrip('/')}/jobs/{self.row.id}" if base else None

    @strawberry.field(
        description="Idempotency key it was submitted with, or null if there was none or it is another caller's."
    )
    def idempotency_key(self, info: Info) -> str | None:
        return self.row.idempotency_key if self.row.created_by == of_info(info).caller.actor else None

    @strawberry.field(  # type: ignore[misc]  # the interface has it without arguments
        description="Its Pods, or processes on a fleet without Pods; at most 1,000, gone ones included.",
        directives=[list_size(20)],
    )
    async def pods(
        self,
        info: Info,
        attempt: Annotated[int | None, argument("Number of the attempt, from 1; the current one if left out.")] = None,
        pool: Annotated[str | None, argument("Only Pods of this pool.")] = None,
        phases: Annotated[list[PodPhase] | None, argument("Only Pods in one of these phases; any if left out.")] = None,
    ) -> list[Pod]:
        run = self._run(attempt)
        pods = await of_info(info).loaders.pods.load(run)
        chosen = [pod for pod in pods if pool in (None, pod.pool) and (phases is None or pod.phase in phases)]
        return [Pod.of(pod, run) for pod in chosen[:1000]]

    @strawberry.field(  # type: ignore[misc]  # the interface has it without arguments
        description="Where its log lines come from: the driver, and every container of every Pod; at most 1,000.",
        directives=[list_size(20)],
    )
    async def log_sources(
        self,
        info: Info,
        attempt: Annotated[int | None, argument("Number of the attempt, from 1; the current one if left out.")] = None,
    ) -> list[LogSource]:
        sources = await of_info(info).loaders.log_sources.load(self._run(attempt))
        return [LogSource.of(source) for source in sources[:1000]]

    @strawberry.field(  # type: ignore[misc]  # the interface has it as a value
        description="What the caller may do with it right now, for enabling buttons."
    )
    def allowed_actions(self, info: Info) -> list[Action]:
        return _allowed(self.row, of_info(info).caller)

    def _run(self, attempt: int | None) -> RunKey:
        return RunKey(self.row.id, self.row.attempt.number if attempt is None else attempt)

    made: ClassVar[Made] = {
        "id": "row.id",
        "name": "row.spec.name",
        "project": "row.spec.project",
        "fleet": "row.spec.fleet",
        "labels": lambda this: [Label.of(label) for label in this.row.spec.labels],
        "gpus": "row.spec.gpus",
        "priority": "row.spec.priority",
        "ended": "row.ended",
        "revision": "row.revision",
        "spec": lambda this: JobSpec.of(this.row.spec),
        "created_at": "row.created_at",
        "created_by": lambda this: Actor.of(this.row.created_by),
        "updated_at": "row.updated_at",
        "reason": lambda this: Reason.maybe(this.mirrored.reason),
        "attempt": "mirrored.number",
        "pools": lambda this: Pool.all_of(this.row),
        "progress": lambda this: Progress.of(this.mirrored.progress) if this.mirrored.progress else None,
        "ray_job_name": lambda this: this.mirrored.rayjob.name if this.mirrored.rayjob else None,
        "teardown": lambda this: Teardown.of(this.mirrored.teardown),
        "log_archive": lambda this: LogArchive.of(this.mirrored.archive),
        "cancellation": lambda this: (
            Cancellation.of(this.mirrored.cancellation) if this.mirrored.cancellation else None
        ),
        "clocks": lambda this: [Clock.of(clock) for clock in this.mirrored.clocks],
        "observation": lambda this: Observation.of(this.mirrored, this.row.spec.fleet),
    }

    @classmethod
    def of(cls, row: domain.Job) -> Self:
        return mirror(cls, row.attempt, row=row)


def _allowed(row: domain.Job, caller: Caller) -> list[Action]:
    may = caller.permissions
    cancels = Permission.CANCEL_JOBS in may and not row.decided and not row.attempt.cancellation
    cancel = [Action.CANCEL] if cancels else []
    retry = [Action.RETRY] if Permission.SUBMIT_JOBS in may and can_be_retried(row) else []
    return [*cancel, *retry, Action.READ_LOGS, Action.DOWNLOAD]


@strawberry.type(description="A job and its cursor.", directives=[cost(0)])
class JobEdge(Mirror):
    cursor: str = strawberry.field(description="Cursor of this job.")
    node: Job = strawberry.field(description="The job.")
    made: ClassVar[Made] = {
        "cursor": lambda this: row_cursor(this.mirrored[0]),
        "node": lambda this: Job.of(this.mirrored[1]),
    }


@strawberry.type(description="A page of jobs.")
class JobConnection(Mirror):
    count: strawberry.Private[Callable[[], Awaitable[int]]]
    edges: list[JobEdge] = strawberry.field(description="The jobs with their cursors.")
    nodes: list[Job] = strawberry.field(description="The jobs alone.")
    page_info: PageInfo = strawberry.field(description="Where the page lies.")

    @strawberry.field(
        description=("How many match in all, exact up to 10,000 and 10,000 beyond."), directives=[cost(5)]
    )
    async def total_count(self) -> int:
        return min(await self.count(), TOTAL_COUNT_MAX)

    @strawberry.field(description="False when there are more than `totalCount` says.", directives=[cost(5)])
    async def total_count_exact(self) -> bool:
        return await self.count() <= TOTAL_COUNT_MAX

    made: ClassVar[Made] = {
        "edges": lambda this: [mirror(JobEdge, row) for row in this.mirrored.rows],
        "nodes": lambda this: [Job.of(row) for _, row in this.mirrored.rows],
        "page_info": lambda this: page_info(this.mirrored),
    }

    @classmethod
    def of(cls, page: Page[domain.Job], count: Callable[[], Awaitable[int]]) -> Self:
        return mirror(cls, page, count=count)
