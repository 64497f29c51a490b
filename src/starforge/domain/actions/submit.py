"""submitJob: one transaction with the job, its first command and its first events; needs nothing but the database."""

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from starforge.domain.actions.apply import apply, command, load
from starforge.domain.capacity.fit import fit, is_known
from starforge.domain.capacity.nodes import FleetNodes
from starforge.domain.capacity.packing import empty_rooms, machines_of, place
from starforge.domain.capsule import INLINE_LIMITS, CodeRule, InlineFile, code_problems, printable
from starforge.domain.changes import Changes, IdempotencyRecord, InlineCode
from starforge.domain.errors import CodeRefused, Conflict, Problem, SpecRefused, StaleRevision, Unsatisfiable
from starforge.domain.job import Actor, Job, new_attempt
from starforge.domain.jobspec import body_sha256
from starforge.domain.names import Digest, job_id
from starforge.domain.ports import Ports
from starforge.domain.queue import Queueing
from starforge.domain.spec import FleetDefaults, JobSpec, SpecDraft
from starforge.domain.spec_rules import freeze
from starforge.domain.telling import write
from starforge.domain.timeline import Action, ActionRequested, CommandKind, Entry, Severity

MUTATION = "submitJob"


class SubmitStatus(StrEnum):
    CREATED = "CREATED"
    REPLAYED = "REPLAYED"
    REFUSED = "REFUSED"
    NOT_DONE = "NOT_DONE"


@dataclass(frozen=True)
class Submission:
    """A spec with its code: a digest, or the files themselves.

    With `allow_unsatisfiable` it is taken although the fleet could not place it today.
    """

    draft: SpecDraft
    code: Digest | tuple[InlineFile, ...]
    idempotency_key: str | None = None
    allow_unsatisfiable: bool = False


@dataclass(frozen=True)
class Checked:
    """A submission that can run; `body` is what an idempotency key is compared by."""

    what: Submission
    spec: JobSpec
    body: str


@dataclass(frozen=True)
class Submitted:
    status: SubmitStatus
    job: Job


def submit(ports: Ports, what: Submission, by: Actor) -> Submitted:
    """Store a job and its first command; UserMistake with every problem if it can't run, Conflict for a reused key.

    Unsatisfiable if the fleet could never place it.
    """
    one = checked(what, ports.fleet.defaults(), _known(ports, what.code))
    replayed = _replayed(ports, one)
    if replayed:
        return replayed
    demand_a_place(ports, one, ports.store.fleet_nodes(ports.fleet.name))
    changes = Changes()
    job = add_job(ports, changes, one, by, MUTATION)
    try:
        apply(ports, changes)
    except StaleRevision:
        replayed = _replayed(ports, one)
        if replayed is None:
            raise
        return replayed
    return Submitted(SubmitStatus.CREATED, load(ports, job.id))


def checked(what: Submission, defaults: FleetDefaults, known: Collection[Digest]) -> Checked:
    """The submission with its spec frozen; UserMistake with every problem. `known` is the code that is here."""
    problems: list[Problem] = []
    try:
        spec = freeze(what.draft, defaults)
    except SpecRefused as refused:
        problems += [below("spec", problem) for problem in refused.problems]
    problems += [below("code", problem) for problem in _code_problems(what.code, known)]
    problems += key_problems(what.idempotency_key)
    if problems:
        raise (CodeRefused if all(problem.rule for problem in problems) else SpecRefused)(problems)
    return Checked(what, spec, body_sha256(what.draft, _code_identity(what.code)))


def _known(ports: Ports, code: Digest | tuple[InlineFile, ...]) -> Collection[Digest]:
    return ports.store.known_code([code]) if isinstance(code, str) else ()


def demand_a_place(ports: Ports, one: Checked, nodes: FleetNodes | None) -> None:
    """Unsatisfiable if the fleet, as its nodes were seen last, could not place it if it were empty."""
    if one.what.allow_unsatisfiable or nodes is None:
        return
    demand, at = machines_of(one.spec), ports.now()
    if is_known(nodes, at) and place(demand, empty_rooms(nodes.views)) is None:
        raise Unsatisfiable(fit(ports.fleet.name, demand, nodes, until=lambda _: None, at=at))


def below(name: str, problem: Problem) -> Problem:
    """The problem with `name` before its field, unless it begins with that."""
    path = problem.field if problem.field[:1] == (name,) else (name, *problem.field)
    return Problem(problem.code, path, problem.message, problem.file, problem.rule)


def key_problems(key: str | None) -> list[Problem]:
    """What is wrong with an idempotency key."""
    if key is None or (1 <= len(key) <= 128 and key.isprintable()):
        return []
    return [Problem("OUT_OF_RANGE", ("idempotencyKey",), "An idempotency key has 1 to 128 printable characters.")]


def _code_problems(code: Digest | tuple[InlineFile, ...], known: Collection[Digest]) -> Sequence[Problem]:
    if not isinstance(code, str):
        return _file_problems(code)
    if code in known:
        return ()
    message = f"No code with digest {code} was uploaded; call prepareCode and send it first."
    return (Problem("CODE_NOT_FOUND", ("digest",), message),)


def _file_problems(files: Sequence[InlineFile]) -> list[Problem]:
    sizes = [(file.path, len(file.content.encode(errors="surrogatepass"))) for file in files]
    broken = [printable(file.path) for file in files if any("\ud800" <= char <= "\udfff" for char in file.content)]
    return [*code_problems(sizes, INLINE_LIMITS), *map(_not_unicode, broken)]


def _not_unicode(path: str) -> Problem:
    message = f"{path}: its text has half a character; send the file by prepareCode."
    return Problem("INVALID", ("code",), message, path, CodeRule.NOT_UNICODE.value)


def _code_identity(code: Digest | tuple[InlineFile, ...]) -> Any:
    if isinstance(code, str):
        return code
    return sorted((asdict(file) for file in code), key=lambda file: str(file["path"]))


def _replayed(ports: Ports, one: Checked) -> Submitted | None:
    key = one.what.idempotency_key
    record = ports.store.idempotency(one.spec.project, MUTATION, key) if key is not None else None
    if record is None:
        return None
    if record.body_sha256 != one.body:
        raise other_body(record)
    return Submitted(SubmitStatus.REPLAYED, load(ports, record.job))


def other_body(record: IdempotencyRecord) -> Conflict:
    """The error for a key that was used with another body."""
    message = f"The idempotency key was used for job {record.job} with another body; use a new key."
    return Conflict([Problem("CONFLICT", ("idempotencyKey",), message)], record.job)


def add_job(ports: Ports, changes: Changes, one: Checked, by: Actor, mutation: str) -> Job:
    """Add to `changes` a new job with its first command and events, and its key as one of `mutation`."""
    at, what = ports.now(), one.what
    code = what.code if isinstance(what.code, str) else None
    job = Job(
        job_id(ports.random()),
        one.spec,
        at,
        by,
        at,
        new_attempt(one.spec, 1, by, at, queued=ports.queueing is not Queueing.OFF),
        code=code,
        idempotency_key=what.idempotency_key,
    )
    detail = ActionRequested(Action.CREATE, by)
    asked = Entry(f"event-{ports.random()}", job.run, Severity.INFO, f"{by.name} asked for it.", at, at, detail)
    changes.entries.append(asked)
    write(changes, None, job, at, ports.random)
    if not isinstance(what.code, str):
        changes.inline.append(InlineCode(job.id, what.code))
    if what.idempotency_key:
        changes.idempotency.append(
            IdempotencyRecord(one.spec.project, mutation, what.idempotency_key, one.body, job.id, 1, at)
        )
    if not job.queues:
        changes.commands.append(command(ports, CommandKind.PACKAGE, job))
    return job
