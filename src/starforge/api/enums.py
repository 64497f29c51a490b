"""Enums of the schema that the domain does not need, and the words for all of them."""

from enum import StrEnum

from starforge.api.scalars import described
from starforge.domain.actions.cancel import CancelStatus
from starforge.domain.actions.submit import SubmitStatus
from starforge.domain.actions.submit_many import BatchErrorPolicy
from starforge.domain.capacity.fit import FitVerdict
from starforge.domain.capacity.nodes import GpuSharing
from starforge.domain.capacity.view import BlockKind, HolderKind
from starforge.domain.changes import Aspect
from starforge.domain.deadlines import ClockKind, ClockState
from starforge.domain.health import HealthCheckKind, HealthStatus
from starforge.domain.job import ActorKind, JobOutcome, JobState
from starforge.domain.logs import LineMark, LogKind, LogState
from starforge.domain.observation import ContainerRole, ContainerState, PodPhase, PodRole, PodRuntime
from starforge.domain.ports import FleetKind
from starforge.domain.progress import NonFinite
from starforge.domain.queries import JobCountKey, JobOrderField, LabelOperator
from starforge.domain.queue import QueueKind
from starforge.domain.reason import EvidenceSource, ReasonCode, ReasonOwner
from starforge.domain.rights import Permission, Role
from starforge.domain.teardown import TeardownState
from starforge.domain.timeline import Action, CommandKind, EventType, Severity


class ChangeKind(StrEnum):
    SNAPSHOT = "SNAPSHOT"
    UPDATED = "UPDATED"
    REMOVED = "REMOVED"
    BOOKMARK = "BOOKMARK"


class Freshness(StrEnum):
    NEVER = "NEVER"
    LIVE = "LIVE"
    STALE = "STALE"
    FINAL = "FINAL"


class ClockSource(StrEnum):
    SPEC = "SPEC"
    FLEET = "FLEET"
    EXTENSION = "EXTENSION"


class SubmissionMode(StrEnum):
    HTTP = "HTTP"
    K8S_JOB = "K8S_JOB"


class RayJobStatus(StrEnum):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    STOPPED = "STOPPED"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    OTHER = "OTHER"


class RayJobDeploymentStatus(StrEnum):
    INITIALIZING = "INITIALIZING"
    WAITING = "WAITING"
    RUNNING = "RUNNING"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"
    SUSPENDING = "SUSPENDING"
    SUSPENDED = "SUSPENDED"
    RETRYING = "RETRYING"
    VALIDATION_FAILED = "VALIDATION_FAILED"
    OTHER = "OTHER"


class ContainerWaitingReason(StrEnum):
    CONTAINER_CREATING = "CONTAINER_CREATING"
    POD_INITIALIZING = "POD_INITIALIZING"
    ERR_IMAGE_PULL = "ERR_IMAGE_PULL"
    IMAGE_PULL_BACK_OFF = "IMAGE_PULL_BACK_OFF"
    ERR_IMAGE_NEVER_PULL = "ERR_IMAGE_NEVER_PULL"
    INVALID_IMAGE_NAME = "INVALID_IMAGE_NAME"
    IMAGE_INSPECT_ERROR = "IMAGE_INSPECT_ERROR"
    REGISTRY_UNAVAILABLE = "REGISTRY_UNAVAILABLE"
    CRASH_LOOP_BACK_OFF = "CRASH_LOOP_BACK_OFF"
    CREATE_CONTAINER_CONFIG_ERROR = "CREATE_CONTAINER_CONFIG_ERROR"
    CREATE_CONTAINER_ERROR = "CREATE_CONTAINER_ERROR"
    RUN_CONTAINER_ERROR = "RUN_CONTAINER_ERROR"
    OTHER = "OTHER"


class KubernetesEventType(StrEnum):
    NORMAL = "NORMAL"
    WARNING = "WARNING"


class ArchiveState(StrEnum):
    OPEN = "OPEN"
    VERIFYING = "VERIFYING"
    COMPLETE = "COMPLETE"
    TRUNCATED = "TRUNCATED"


class CodeStatus(StrEnum):
    PRESENT = "PRESENT"
    UPLOAD_NEEDED = "UPLOAD_NEEDED"
    REFUSED = "REFUSED"


class UserErrorCode(StrEnum):
    REQUIRED = "REQUIRED"
    INVALID = "INVALID"
    OUT_OF_RANGE = "OUT_OF_RANGE"
    DUPLICATE = "DUPLICATE"
    RESERVED = "RESERVED"
    EXCLUSIVE = "EXCLUSIVE"
    UNKNOWN_FLEET = "UNKNOWN_FLEET"
    UNKNOWN_SERIES = "UNKNOWN_SERIES"
    UNKNOWN_PROJECT = "UNKNOWN_PROJECT"
    STORAGE_NOT_SHARED = "STORAGE_NOT_SHARED"
    UNSATISFIABLE = "UNSATISFIABLE"
    QUOTA_EXCEEDED = "QUOTA_EXCEEDED"
    CODE_NOT_FOUND = "CODE_NOT_FOUND"
    UNSAFE_PATH = "UNSAFE_PATH"
    SECRET_FOUND = "SECRET_FOUND"
    TOO_LARGE = "TOO_LARGE"
    CONFLICT = "CONFLICT"
    WRONG_STATE = "WRONG_STATE"
    NOT_FOUND = "NOT_FOUND"
    FORBIDDEN = "FORBIDDEN"
    FILTER_TOO_WIDE = "FILTER_TOO_WIDE"


class MetricBucket(StrEnum):
    MEAN = "MEAN"
    MINIMUM = "MINIMUM"
    MAXIMUM = "MAXIMUM"
    LAST = "LAST"


class DifferenceKind(StrEnum):
    ADDED = "ADDED"
    REMOVED = "REMOVED"
    CHANGED = "CHANGED"


class OrderDirection(StrEnum):
    ASC = "ASC"
    DESC = "DESC"


described(
    JobState,
    "Where an attempt of a job is; it moves down this list and may skip from any of them to FINISHING.",
    {
        "SUBMITTED": "Accepted and stored.",
        "PACKAGING": "Its Capsule is being built and uploaded.",
        "LAUNCHING": "Its RayJob is being created.",
        "PENDING": "Its RayJob exists; GPUs, images or Pods are awaited.",
        "RUNNING": "The user's command runs.",
        "FINISHING": "The outcome is known; logs are being archived and cluster objects removed.",
        "SUCCEEDED": "End state: the command exited with 0, logs are kept, nothing is left in the cluster.",
        "FAILED": "End state: it did not succeed, `reason` says why, nothing is left in the cluster.",
        "CANCELED": "End state: somebody canceled it, nothing is left in the cluster.",
    },
)
described(
    JobOutcome,
    "How an attempt ended.",
    {
        "SUCCEEDED": "The command exited with 0.",
        "FAILED": "Anything else that nobody asked for.",
        "CANCELED": "Somebody asked for it to end before it did.",
    },
)
described(
    ReasonCode,
    "Why a workload waits or ended; more may be added.",
    {
        "STARTING": "Nothing is wrong: images are pulled and containers started.",
        "USER_CODE": "The user's command failed by itself.",
        "INVALID_SPEC": "The spec can't be run, as found after submit.",
        "CAPSULE_INVALID": "The Capsule is damaged, missing or refused by a check.",
        "RUNTIME_ENV": "The Ray runtime environment could not be set up from the Capsule.",
        "IMAGE_PULL": "An image does not exist or can't be pulled.",
        "QUEUED": "It waits in a queue for its turn.",
        "UNSCHEDULABLE": "No node has the GPUs, labels or tolerated taints that a machine needs.",
        "QUOTA": "A quota of the namespace or of the project is used up.",
        "VOLUME": "A volume can't be bound, attached or mounted.",
        "MISSING_REFERENCE": "A Secret, ConfigMap or service account that a container needs is missing.",
        "ADMISSION_DENIED": "An admission webhook or policy denied an object.",
        "INIT_CRASH": "An init container fails again and again.",
        "OOM_KILLED": "A container used more memory than its limit.",
        "EVICTED": "A Pod was evicted, for pressure on its node or by request.",
        "PREEMPTED": "A Pod had to make room for one of higher priority.",
        "HEAD_LOST": "The head Pod was lost or replaced, so the run can't be trusted to be the first one.",
        "NODE_LOST": "A node with a Pod on it was lost, or does not answer.",
        "DELETED_OUTSIDE": "Somebody or something else deleted the RayJob or its namespace.",
        "PRERUNNING_DEADLINE": "The pre-running clock ran out.",
        "QUEUE_DEADLINE": "The queue clock ran out.",
        "ACTIVE_DEADLINE": "The active clock ran out.",
        "CANCELED": "Somebody asked for it to end.",
        "OPERATOR_ABSENT": "The KubeRay operator does not act.",
        "PERMISSION": "StarForge's service account may not do what is needed.",
        "API_UNAVAILABLE": "The Kubernetes API can't be reached.",
        "OBJECT_STORE_UNAVAILABLE": "The object store can't be reached.",
        "LAUNCH_FAILED": "The RayJob could not be created for another cause.",
        "TEARDOWN_BLOCKED": "Cluster objects refuse to go, for example for a finalizer nobody serves, or are kept for a log that "
        "can't be read yet.",
        "INTERNAL": "A defect of StarForge itself; the message has the id to quote.",
    },
)
described(
    ReasonOwner,
    "Who has to move next.",
    {
        "USER": "The person whose job it is.",
        "PLATFORM": "The people who run StarForge.",
        "CLUSTER": "The cluster or the people who run it.",
    },
)
described(
    EvidenceSource,
    "What kind of observation supports a reason.",
    {
        "POD_CONDITION": "A condition of a Pod.",
        "POD_STATUS": "Phase or reason of a Pod.",
        "CONTAINER_STATE": "Waiting or terminated state of a container.",
        "RAYJOB_STATUS": "Status of the RayJob.",
        "RAYCLUSTER_CONDITION": "Condition of the RayCluster.",
        "KUBERNETES_EVENT": "A Kubernetes Event.",
        "API_RESPONSE": "An answer of the Kubernetes API.",
        "EXIT_CODE": "Exit code of the user's command as the runner wrote it.",
        "LOG": "Lines of a log.",
        "CLOCK": "A clock of ours.",
        "CHECK": "A check that StarForge made itself.",
    },
)
described(
    ActorKind,
    "What acts.",
    {
        "USER": "A person signed in by OIDC.",
        "TOKEN": "A bearer token.",
        "PLATFORM": "StarForge itself.",
    },
)
described(
    ClockKind,
    "What a clock limits.",
    {
        "QUEUE": "From submit to having a place.",
        "PRE_RUNNING": "From having a RayJob to the user's command running.",
        "ACTIVE": "How long the user's command may run.",
    },
)
described(
    ClockState,
    "Whether a clock runs.",
    {
        "NOT_STARTED": "Its part of life has not begun.",
        "RUNNING": "It counts.",
        "GRACE": "It would have run out, but gets a grace because StarForge or the cluster was away.",
        "STOPPED": "Its part of life ended in time.",
        "EXPIRED": "It ran out.",
        "OFF": "It has no limit.",
    },
)
described(
    PodRuntime,
    "What a Pod really is.",
    {
        "KUBERNETES": "A Kubernetes Pod.",
        "PROCESS": "A process of this machine.",
        "SIMULATED": "Nothing: a simulated fleet made it up.",
    },
)
described(
    PodRole,
    "What a Pod is for.",
    {
        "HEAD": "Ray head, machine zero of the primary pool.",
        "WORKER": "Ray worker.",
        "SUBMITTER": "Submitter of the run.",
    },
)
described(
    PodPhase,
    "Phase of a Pod.",
    {
        "PENDING": "Accepted; not all containers have started.",
        "RUNNING": "On a node with at least one container running or starting.",
        "SUCCEEDED": "All containers exited with 0.",
        "FAILED": "All containers ended and at least one failed.",
        "UNKNOWN": "Its node can't be asked.",
    },
)
described(
    ContainerRole,
    "When a container runs within its Pod.",
    {
        "INIT": "Before the others, to its end.",
        "SIDECAR": "Before the others and beside them.",
        "MAIN": "As what the Pod is for.",
    },
)
described(
    ContainerState,
    "Where a container is.",
    {
        "WAITING": "Not started.",
        "RUNNING": "Running.",
        "TERMINATED": "Ended.",
    },
)
described(
    TeardownState,
    "How far removal is.",
    {
        "AWAITING_ARCHIVE": "Logs are not yet stored and verified.",
        "DELETING": "Deletion was asked for.",
        "BLOCKED": "Something does not go and a person has to act.",
        "RELEASED": "Everything was seen to be gone.",
    },
)
described(
    NonFinite,
    "A number that JSON can't express.",
    {
        "NAN": "Not a number, as when a loss diverges.",
        "POSITIVE_INFINITY": "Above every number.",
        "NEGATIVE_INFINITY": "Below every number.",
    },
)
described(
    LogKind,
    "What a log is of.",
    {
        "DRIVER": "The user's command.",
        "CONTAINER": "A container.",
        "PREVIOUS_CONTAINER": "A container's run before its last restart.",
        "INIT_CONTAINER": "An init container.",
    },
)
described(
    LogState,
    "Whether more lines may come.",
    {
        "OPEN": "It is being followed.",
        "INTERRUPTED": "It can't be followed right now and will be taken up where it was left.",
        "CLOSED": "It has ended with every line kept.",
        "TRUNCATED": "It has ended with lines missing, as `gaps` says.",
    },
)
described(
    LineMark,
    "What was done to a line.",
    {
        "CUT": "It was longer than 64 KiB and is cut; the download has all of it.",
        "INVALID_UTF8": "Bytes that are not UTF-8 were replaced by U+FFFD.",
    },
    name="LogLineMark",
)
described(
    EventType,
    "What an event is about; more may be added, so fall back on `message`.",
    {
        "STATE_CHANGED": "A job or playground came into another state.",
        "REASON_CHANGED": "Another reason holds a workload, or none any more.",
        "ACTION_REQUESTED": "Somebody asked for something: submit, cancel, retry, extend or stop.",
        "CLOCK_CHANGED": "A clock started, stopped, got a grace or ran out.",
        "POD_CHANGED": "A Pod appeared, changed phase, restarted or went.",
        "LOG_CHANGED": "A log was opened, closed or archived, or lines were lost.",
        "TEARDOWN_CHANGED": "Removal began, is blocked or is proven done.",
        "COMMAND_FAILED": "Work behind the scenes failed and is tried again, or was parked.",
        "FLEET_CHANGED": "A fleet can't be asked, or can again.",
        "KUBERNETES": "A Kubernetes Event.",
    },
)
described(
    Severity,
    "How much attention an event deserves.",
    {
        "INFO": "Good to know.",
        "WARNING": "May become a problem.",
        "ERROR": "Is a problem.",
    },
)
described(
    CommandKind,
    "What is to be done.",
    {
        "PACKAGE": "Build and upload a Capsule.",
        "LAUNCH": "Create the cluster objects.",
        "CANCEL": "Signal and stop.",
        "ARCHIVE": "Store and verify logs.",
        "TEARDOWN": "Remove the cluster objects and see them gone.",
    },
)
described(
    HealthStatus,
    "How well something works.",
    {
        "OK": "Works.",
        "DEGRADED": "Works with limits that the message tells.",
        "DOWN": "Does not work.",
        "UNKNOWN": "Could not be checked.",
    },
)
described(
    HealthCheckKind,
    "What is checked; more may be added.",
    {
        "DATABASE": "The database answers.",
        "REDIS": "Redis answers; without it nothing is lost, but changes come up to a second later.",
        "OBJECT_STORE": "The object store can be written and read.",
        "WORKERS": "Workers take work.",
        "BEAT": "The tick that re-sends and enforces is on time.",
        "KUBERNETES_API": "The Kubernetes API can be reached and lets us in.",
        "RAYJOB_CRD": "The RayJob definition is installed in a version we know.",
        "OPERATOR": "The KubeRay operator acts.",
        "RBAC": "The service account may do all that is needed.",
        "OBSERVER": "The observer has its lease and is up to date.",
        "STORAGE": "The storage claims are bound.",
        "TEARDOWN": "What has ended goes from the cluster.",
    },
)
described(
    LabelOperator,
    "How to compare a label, as Kubernetes selectors do.",
    {
        "IN": "The value is one of these.",
        "NOT_IN": "The label is missing or its value is none of these.",
        "EXISTS": "The label is there.",
        "DOES_NOT_EXIST": "The label is missing.",
    },
)
described(
    JobOrderField,
    "What jobs can be ordered by.",
    {
        "CREATED_AT": "Creation.",
        "UPDATED_AT": "Last change; rows move while you page, so use it for short lists.",
        "STARTED_AT": "Start of the current attempt's run.",
        "ENDED_AT": "End of the current attempt.",
        "NAME": "Name.",
        "PRIORITY": "Priority.",
        "GPUS": "GPUs asked for.",
    },
)
described(
    Aspect,
    "What changed about a job.",
    {
        "STATE": "State, outcome, attempt or timestamps.",
        "REASON": "What holds it, or why it ended.",
        "PROGRESS": "Step, total or metrics; sent at most once a second per job.",
        "PODS": "Pods, containers or where they run.",
        "CLOCKS": "A clock started, stopped or got another due time.",
        "LOGS": "A log source appeared, closed or was archived.",
        "OBSERVATION": "Whether and when the cluster was last heard.",
        "TEARDOWN": "How far removal of its cluster objects is.",
        "QUEUE": "Its place in the queue.",
    },
    name="JobAspect",
)
described(
    Action,
    "Something that can be asked for or done with a job or playground.",
    {
        "CREATE": "Make it.",
        "CANCEL": "Cancel a job.",
        "RETRY": "Start another attempt of a job.",
        "READ_LOGS": "Read and follow its logs.",
        "DOWNLOAD": "Download its logs and its Capsule.",
    },
    name="WorkloadAction",
)
described(
    QueueKind,
    "Who decides about a queue.",
    {
        "STARFORGE": "StarForge: all pools or none, by priority, then by age, with backfill.",
        "KUEUE": "Kueue.",
    },
)
described(
    FleetKind,
    "What a fleet is.",
    {
        "KUBERAY": "A Kubernetes cluster with KubeRay.",
        "LOCAL": "Ray on the machine of the gateway.",
        "SIMULATED": "Made up, to build dashboards on.",
    },
)
described(
    SubmitStatus,
    "What became of a submission.",
    {
        "CREATED": "A new job was made.",
        "REPLAYED": "The same key and body came before: this is that job and nothing was made.",
        "REFUSED": "Refused, see `userErrors`.",
        "NOT_DONE": ("Fine by itself, but not made because ALL_OR_NOTHING was asked for and another item was refused."),
    },
)
described(
    BatchErrorPolicy,
    "What to do when some items of a batch are refused.",
    {
        "INDEPENDENT": "Make the others.",
        "ALL_OR_NOTHING": "Make none.",
    },
)
described(
    CancelStatus,
    "What became of a request to cancel.",
    {
        "REQUESTED": "It is being canceled.",
        "ALREADY_REQUESTED": "It was being canceled already.",
        "ALREADY_ENDED": "It has ended or its outcome is decided, whoever was first: nothing was done.",
        "WOULD_CANCEL": "It would be canceled, had this not been a dry run.",
        "REFUSED": "Refused, see `userErrors`.",
    },
)
described(
    ChangeKind,
    "What a step of a live stream is.",
    {
        "SNAPSHOT": "Part of the state at the start.",
        "UPDATED": "New or changed.",
        "REMOVED": "No longer there or no longer matching the filter; may also come for objects that never matched.",
        "BOOKMARK": "Nothing new: payload null, cursor fresh; the first one ends the snapshot.",
    },
)
described(
    Freshness,
    "Whether the cluster is being heard.",
    {
        "NEVER": "Nothing was asked yet, as before launch.",
        "LIVE": "Watched: a change shows within a second or two.",
        "STALE": "The cluster can't be asked; what is shown is the last known state and nothing is decided on it.",
        "FINAL": "It has ended and is released: nothing is left that could change.",
    },
)
described(
    ClockSource,
    "Where a limit comes from.",
    {
        "SPEC": "The spec.",
        "FLEET": "The fleet's default.",
        "EXTENSION": "An extension after creation.",
    },
)
described(
    SubmissionMode,
    "How KubeRay hands the command to Ray.",
    {
        "HTTP": "The operator asks Ray's dashboard over HTTP.",
        "K8S_JOB": "A submitter Pod runs `ray job submit`.",
    },
)
described(
    RayJobStatus,
    "Status of a run, as Ray tells it.",
    {
        "PENDING": "Not started.",
        "RUNNING": "Started.",
        "STOPPED": "Stopped by request.",
        "SUCCEEDED": "Exited with 0.",
        "FAILED": "Exited otherwise or could not be set up.",
        "OTHER": "A value this version of StarForge does not know.",
    },
)
described(
    RayJobDeploymentStatus,
    "Status of a RayJob's deployment, as the operator tells it.",
    {
        "INITIALIZING": "Its RayCluster is being made.",
        "WAITING": "Waits for a person, in interactive mode.",
        "RUNNING": "Its RayCluster is ready and the run was handed over.",
        "COMPLETE": "The run ended, which need not mean success.",
        "FAILED": "It failed.",
        "SUSPENDING": "It is being suspended.",
        "SUSPENDED": "It is suspended, as while queued.",
        "RETRYING": "The operator starts it again.",
        "VALIDATION_FAILED": "The operator refuses the object.",
        "OTHER": "A value this version of StarForge does not know.",
    },
)
described(
    ContainerWaitingReason,
    "Why a container waits.",
    {
        "CONTAINER_CREATING": "It is being created.",
        "POD_INITIALIZING": "Init containers are not done.",
        "ERR_IMAGE_PULL": "Its image could not be pulled.",
        "IMAGE_PULL_BACK_OFF": "Its image could not be pulled several times, and the next try is put off.",
        "ERR_IMAGE_NEVER_PULL": "Its image is not on the node and must not be pulled.",
        "INVALID_IMAGE_NAME": "Its image's name is malformed.",
        "IMAGE_INSPECT_ERROR": "Its image can't be read on the node.",
        "REGISTRY_UNAVAILABLE": "The image registry can't be reached.",
        "CRASH_LOOP_BACK_OFF": "It ended several times, and the next start is put off.",
        "CREATE_CONTAINER_CONFIG_ERROR": "A Secret, ConfigMap or key that it needs is missing.",
        "CREATE_CONTAINER_ERROR": "It could not be created.",
        "RUN_CONTAINER_ERROR": "It could not be started.",
        "OTHER": "Another reason, found in `waitingMessage`.",
    },
)
described(
    KubernetesEventType,
    "What Kubernetes calls an event.",
    {
        "NORMAL": "As expected.",
        "WARNING": "Something is off.",
    },
)
described(
    ArchiveState,
    "How far an archive is.",
    {
        "OPEN": "Lines are still being added.",
        "VERIFYING": "It is being closed and read back.",
        "COMPLETE": "Everything is there and verified.",
        "TRUNCATED": "What could be had is there and verified, but lines are missing.",
    },
)
described(
    CodeStatus,
    "Whether code has to be sent.",
    {
        "PRESENT": "It is here: nothing has to be sent.",
        "UPLOAD_NEEDED": "It has to be sent with the upload request.",
        "REFUSED": "Refused, see `userErrors`.",
    },
)
described(
    UserErrorCode,
    "Code of something the caller can put right; more may be added.",
    {
        "REQUIRED": "A value is missing.",
        "INVALID": "A value is malformed.",
        "OUT_OF_RANGE": "A number or size is too small or too large.",
        "DUPLICATE": "Two values that must differ are equal.",
        "RESERVED": "A name belongs to the platform.",
        "EXCLUSIVE": "Values that exclude each other were given together.",
        "UNKNOWN_FLEET": "There is no fleet of that name.",
        "UNKNOWN_SERIES": "The series can't be one, or no fleet has it.",
        "UNKNOWN_PROJECT": "There is no project of that name that the caller may use.",
        "STORAGE_NOT_SHARED": "The fleet's storage can't be shared, so one machine is the most.",
        "UNSATISFIABLE": "No fleet could ever place it.",
        "QUOTA_EXCEEDED": "A quota would be exceeded.",
        "CODE_NOT_FOUND": "No code with that digest was uploaded.",
        "UNSAFE_PATH": "A path is absolute, leaves the root, or collides with another.",
        "SECRET_FOUND": "A file looks like a secret.",
        "TOO_LARGE": "There is too much of something.",
        "CONFLICT": "The idempotency key was used with another body.",
        "WRONG_STATE": "The object is not in a state that allows this.",
        "NOT_FOUND": "There is no such object that the caller may see.",
        "FORBIDDEN": "The caller may see it but not do this.",
        "FILTER_TOO_WIDE": "The filter is empty or matches more than was allowed for.",
    },
)
described(
    MetricBucket,
    "How the points of a bucket become one value.",
    {
        "MEAN": "Their mean.",
        "MINIMUM": "The smallest.",
        "MAXIMUM": "The largest.",
        "LAST": "The last one.",
    },
)
described(
    DifferenceKind,
    "What happened to a file from left to right.",
    {
        "ADDED": "Only on the right.",
        "REMOVED": "Only on the left.",
        "CHANGED": "On both sides with different content or mode.",
    },
)
described(
    JobCountKey,
    "What jobs can be counted by.",
    {
        "STATE": "State.",
        "OUTCOME": "Outcome.",
        "REASON": "Code of the reason.",
        "PROJECT": "Project.",
        "FLEET": "Fleet.",
        "SERIES": "GPU series of any pool, so that a job may count several times.",
        "CREATED_BY": "Name of the creator.",
        "LABEL": "Value of the label in `labelKey`.",
    },
)
described(
    OrderDirection,
    "Which way to order.",
    {
        "ASC": "Smallest or oldest first.",
        "DESC": "Largest or newest first.",
    },
)
described(
    GpuSharing,
    "How GPU devices are divided.",
    {
        "WHOLE": "A device is a whole GPU.",
        "MIG": "A device is a MIG slice of a GPU.",
        "TIME_SLICED": "A device is a share in time of a GPU.",
        "DYNAMIC_CLAIMS": "Devices are handed out by resource claims, which are shown but not counted.",
    },
)
described(
    BlockKind,
    "What blocks GPUs; each blocked GPU is counted under one cause, the first that applies in this order.",
    {
        "NOT_READY": "Its node can't be asked or says it is not ready.",
        "CORDONED": "Its node is cordoned.",
        "TAINTED": "Its node has a taint that jobs do not tolerate.",
        "UNHEALTHY": "The device is there but not healthy.",
        "NO_DEVICES": "The node is labelled with a series but its device plugin offers nothing.",
        "UNLABELLED": "The node has no series label, so no job can ask for it.",
        "OTHER": "Another cause, told by the message.",
    },
)
described(
    HolderKind,
    "What holds GPUs.",
    {
        "JOB": "A job of StarForge.",
        "PLAYGROUND": "A playground of StarForge.",
        "FOREIGN": "A Pod that is not StarForge's and that the scheduler counts all the same.",
    },
)
described(
    FitVerdict,
    "When a spec would find its GPUs.",
    {
        "NOW": "All pools fit right now.",
        "LATER": "They fit once something ends or is unblocked.",
        "NEVER": ("They do not fit even if the fleet were empty; submit refuses it unless `allowUnsatisfiable`."),
        "UNKNOWN": "The cluster can't be asked and was not heard lately enough to say.",
    },
)
described(
    Role,
    "What a caller is trusted with; each includes the ones before.",
    {
        "VIEWER": "Reads what its projects have.",
        "SUBMITTER": "Submits, cancels, retries and plays in its projects.",
        "ADMIN": "Does everything everywhere.",
    },
)
described(
    Permission,
    "Something a caller may do.",
    {
        "READ": "See jobs, playgrounds, capacity and events.",
        "READ_LOGS": "Read logs.",
        "READ_CODE": "Read and download code.",
        "SUBMIT_JOBS": "Submit and retry jobs.",
        "CANCEL_JOBS": "Cancel jobs of others in its projects.",
        "MANAGE_PLAYGROUNDS": "Create, extend and stop playgrounds.",
        "OPERATE": "See what only operators need: parked commands, access checks, rendered objects.",
    },
)
