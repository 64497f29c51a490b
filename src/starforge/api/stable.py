"""Which fields are feed-stable: for a caller's rights, a function of their arguments and the position of the feed alone.

A document of stable fields gives the same answer until the position moves, so its bytes can be kept and served again.
A field is stable if all it reads are rows of our database whose every change that shows gets a row of the feed. It is
not if it reads a clock, signs a link, asks the object store, the fleet or a log, or tells something of the very caller
where others have the same rights.

A write of a job without aspects is quiet: it gets no row of the feed. Quiet writes change, as of today:

- what the last picture of the cluster said when nothing of it is told: `observed_at`, the RayJob, the run's name,
  namespace and uid, the head's uid, when the command exited, the ending that was decided on. Shown of these are
  Job.observedAt, Observation.observedAt, Job.rayJobName, Attempt.rayJob and `placement`: not stable.
- the hashes of nonces, which nobody is shown.
- `progress` and `updated_at`, if the last progress was told less than a second ago. It is told when the second is over,
  and subscribers see it no earlier either: stable. (If the observer dies in that second, both wait for the next report.)
- `revision`, with any of these: stable, as two revisions that no row of the feed lies between differ in nothing that is
  stable. An answer that was kept may show the lower of the two after a fresh one showed the higher.

Points of metrics are stored with no row of the feed but that of the progress they come with, which need not differ:
`metrics` and `metricNames` are not stable. Pods are: a write of Pods comes with the aspect PODS or TEARDOWN. Entries of
the timeline are: each is written with a row of the feed, and lives as long as its job.

Feed.cursor is stable, as it is the position itself; Feed.at is the time of the request and is not. Of Observation, what
says whether the fleet is heard is told (OBSERVATION); only `observedAt` is not.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graphql import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    FragmentSpreadNode,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLSchema,
    InlineFragmentNode,
    OperationDefinitionNode,
    OperationType,
    SelectionSetNode,
    get_named_type,
    is_abstract_type,
    is_object_type,
)

_EVENT = "id type severity message count firstAt lastAt attempt fleet workload"

_STABLE: Mapping[str, str] = {
    "ActionEvent": f"{_EVENT} action actor note",
    "Actor": "name kind",
    "Attempt": (
        "id number state outcome exitCode reason requestedBy createdAt launchedAt startedAt finishedAt logsArchivedAt "
        "releasedAt endedAt clocks logArchive teardown job"
    ),
    "Cancellation": "requestedAt requestedBy note graceUntil",
    "Capsule": "id digest codeDigest files bytes transportSha256 runnerDigest createdAt",
    "Clock": "kind state limitSeconds source startedAt dueAt endedAt",
    "ClockEvent": f"{_EVENT} clock",
    "CommandEvent": f"{_EVENT} command tries parked",
    "Container": (
        "name role image state waitingReason waitingMessage startedAt ready restarts termination previousTermination"
    ),
    "ContainerTermination": "exitCode signal reason message oomKilled startedAt finishedAt",
    "Deadlines": "queueSeconds preRunningSeconds activeSeconds",
    "EnvVar": "name value secret",
    "EventConnection": "edges nodes pageInfo",
    "EventEdge": "cursor node",
    "Evidence": "source object path text observedAt",
    "Feed": "cursor retentionSeconds",
    "Fleet": "id",
    "FleetCapacity": "id",
    "FleetEvent": f"{_EVENT} reason",
    "GpuNode": "id",
    "Job": (
        "id name project fleet labels gpus ended reason revision createdAt createdBy releasedAt observation clocks pods "
        "allowedActions webUrl events priority state outcome exitCode spec attempt pools progress teardown logArchive "
        "cancellation updatedAt launchedAt startedAt finishedAt logsArchivedAt endedAt capsule attempts podCounts history "
        "queue"
    ),
    "JobConnection": "edges nodes pageInfo totalCount totalCountExact",
    "JobCount": "value count",
    "JobEdge": "cursor node",
    "JobSpec": "name project fleet description image command env pools deadlines labels priority cancelGraceSeconds queue",
    "JobStateEvent": f"{_EVENT} jobState jobStateBefore reason",
    "KubernetesEvent": f"{_EVENT} kubernetesReason kubernetesType object reportedBy pod",
    "Label": "key value",
    "LogArchive": "state sources lines bytes sha256 verifiedAt reason",
    "LogEvent": f"{_EVENT} logState",
    "LogSource": "id",
    "MetricValue": "name value nonFinite step at",
    "ObjectRef": "kind name namespace uid",
    "Observation": "freshness staleSince problem",
    "PageInfo": "hasNextPage hasPreviousPage startCursor endCursor",
    "Pod": (
        "id name uid namespace runtime role pool machine attempt phase ready terminating waitingReason reason message "
        "nodeName gpus restarts conditions containers createdAt scheduledAt startedAt finishedAt deletionRequestedAt "
        "goneAt observedAt"
    ),
    "PodCondition": "type status reason message changedAt",
    "PodCounts": "wanted pending running ready succeeded failed terminating",
    "PodEvent": f"{_EVENT} phase pod",
    "Pool": "name primary series machines gpusPerMachine spec reason podCounts pods",
    "PoolSpec": "name series machines gpusPerMachine cpus memory memoryBytes shmSize image",
    "Queue": "id name kind length",
    "QueuePlace": "queue position gpusAhead estimatedStartAt decision decidedAt",
    "Progress": "step total fraction stepsPerSecond estimatedEndAt reportedAt metrics",
    "Query": "feed node nodes job jobs events jobCounts",
    "Reason": "code message advice whose retryable since evidence",
    "ReasonEvent": f"{_EVENT} reason",
    "RemainingObject": "object deletionRequestedAt finalizers",
    "SecretKey": "name key",
    "SeriesCapacity": "id",
    "StateSpan": "state attempt enteredAt leftAt",
    "Teardown": "state startedAt remaining reason releasedAt",
    "TeardownEvent": f"{_EVENT} teardownState",
}

_UNSTABLE: Mapping[str, str] = {
    "Attempt": "rayJob placement",
    "Capsule": "contents download",
    "Feed": "at",
    "Fleet": "name kind isDefault storageShared logicalGpus defaults capacity health",
    "FleetCapacity": "name kind observedAt observation logicalGpus series waiting queues",
    "GpuNode": (
        "name fleet series total allocatable used free blocked logicalGpus sharing product ready cordoned taints causes "
        "holders observedAt"
    ),
    "Job": "observedAt logSources rayJobName metricNames metrics logs logSearch idempotencyKey diff placement",
    "LogEvent": "source",
    "LogSource": "key kind attempt container state lines bytes firstLineAt lastLineAt closedAt sha256 gaps pod download",
    "Observation": "observedAt",
    "Pod": "logSources",
    "SeriesCapacity": (
        "name labelled logicalGpus total allocatable used free blocked largestFree largestNode freeBlocks causes nodes "
        "holders waiting"
    ),
    "Query": "viewer fleets capacity fits health",
}

_LOGS = "LogGap LogLine LogLineConnection LogLineEdge LogMatch LogMatchConnection LogMatchEdge TextRange"
_OBJECTS = (
    "CapsuleFile CapsuleFileConnection CapsuleFileEdge FileDifference HttpHeader JobDiff SignedRequest SpecDifference"
)
_SETTINGS_AND_CALLERS = "FleetDefaults Limits Placement RateLimit Viewer"
_QUIET = "MetricSeries RayJob"
_HEALTH = "AccessCheck Command CommandQueue FleetHealth Health HealthChange HealthCheck"
_CAPACITY = "BlockCause CapacityChange Demand FitReport FleetFit FreeBlock Holder PoolFit Taint UnsatisfiableError"
_DOINGS = (
    "Mutation Subscription CancelJobPayload CancelJobsPayload CancelOutcome PrepareCodePayload RetryJobPayload "
    "SubmitJobPayload SubmitJobsPayload SubmitOutcome CodeError ConflictError InputError EventChange JobChange LogChunk"
)
UNSTABLE_TYPES = frozenset(
    " ".join((_LOGS, _OBJECTS, _SETTINGS_AND_CALLERS, _QUIET, _HEALTH, _CAPACITY, _DOINGS)).split()
)
"""Types of which no field is stable."""
STABLE_FIELDS = frozenset(f"{kind}.{name}" for kind, names in _STABLE.items() for name in names.split())
UNSTABLE_FIELDS = frozenset(f"{kind}.{name}" for kind, names in _UNSTABLE.items() for name in names.split())
"""Of types that have stable ones too."""

_KEPT = "_feed_stable"


def is_stable(schema: GraphQLSchema, document: DocumentNode, operation_name: str | None = None) -> bool:
    """Whether the named, or the only, operation of a valid document is a query of stable fields alone.

    Variables have no say in it: what @skip and @include may leave out counts. What comes of it is kept with the
    document. False if there is no such operation, or more than one.
    """
    operations = [
        node
        for node in document.definitions
        if isinstance(node, OperationDefinitionNode) and operation_name in (None, node.name and node.name.value)
    ]
    if len(operations) != 1 or operations[0].operation is not OperationType.QUERY:
        return False
    kept = operations[0].__dict__.get(_KEPT)
    if kept is None or kept[0] is not schema:
        fragments = {node.name.value: node for node in document.definitions if isinstance(node, FragmentDefinitionNode)}
        stable = all(_asked(schema, operations[0], fragments))
        kept = operations[0].__dict__[_KEPT] = (schema, stable)
    return bool(kept[1])


def _asked(
    schema: GraphQLSchema, operation: OperationDefinitionNode, fragments: Mapping[str, FragmentDefinitionNode]
) -> Iterator[bool]:
    """For each field that is asked for whether it is stable; each set of fields of a fragment is looked at once."""
    ahead: list[tuple[GraphQLNamedType | None, SelectionSetNode]] = [(schema.query_type, operation.selection_set)]
    seen: set[tuple[str, int]] = set()
    while ahead:
        parent, selections = ahead.pop()
        if parent is None:
            yield False
            continue
        if (parent.name, id(selections)) in seen:
            continue
        seen.add((parent.name, id(selections)))
        for node in selections.selections:
            if isinstance(node, FieldNode):
                yield _is_stable_field(schema, parent, node.name.value)
            ahead += _below(schema, parent, node, fragments)


def _below(
    schema: GraphQLSchema, parent: Any, node: Any, fragments: Mapping[str, FragmentDefinitionNode]
) -> Sequence[tuple[GraphQLNamedType | None, SelectionSetNode]]:
    if isinstance(node, FragmentSpreadNode):
        node = fragments[node.name.value]
    if isinstance(node, InlineFragmentNode | FragmentDefinitionNode):
        condition = node.type_condition
        return [(schema.get_type(condition.name.value) if condition else parent, node.selection_set)]
    field = getattr(parent, "fields", {}).get(node.name.value)
    return [(get_named_type(field.type), node.selection_set)] if field and node.selection_set else []


def _is_stable_field(schema: GraphQLSchema, parent: GraphQLNamedType, name: str) -> bool:
    if name == "__typename":
        return True
    kinds: Sequence[GraphQLNamedType] = schema.get_possible_types(parent) if is_abstract_type(parent) else [parent]
    return bool(kinds) and all(f"{kind.name}.{name}" in STABLE_FIELDS for kind in kinds)


def object_types(schema: GraphQLSchema) -> Iterator[GraphQLObjectType]:
    """Every object type of ours."""
    for kind in schema.type_map.values():
        if is_object_type(kind) and not kind.name.startswith("__"):
            yield kind
