"""createPlayground: one transaction with the playground, its first command and its first events."""

import hashlib
from dataclasses import asdict, dataclass

from starforge.domain.actions.apply import apply
from starforge.domain.actions.playgrounds import command, load_playground
from starforge.domain.actions.submit import SubmitStatus, key_problems
from starforge.domain.changes import Changes, IdempotencyRecord
from starforge.domain.errors import Conflict, Problem, SpecRefused, StaleRevision
from starforge.domain.job import Actor
from starforge.domain.jobspec import canonical
from starforge.domain.names import PlaygroundId, playground_id
from starforge.domain.playground import Playground, PlaygroundSpec, PlaygroundState, new_clocks
from starforge.domain.playground_spec import PlaygroundDraft, freeze_playground
from starforge.domain.playground_telling import write_playground
from starforge.domain.ports import Ports
from starforge.domain.timeline import Action, ActionRequested, CommandKind, Entry, Severity

MUTATION = "createPlayground"


@dataclass(frozen=True)
class Created:
    status: SubmitStatus
    playground: Playground


def create_playground(ports: Ports, draft: PlaygroundDraft, by: Actor, key: str | None = None) -> Created:
    """Store a playground and its first command; UserMistake with every problem, Conflict for a reused key."""
    spec = _checked(ports, draft, key)
    body = hashlib.sha256(canonical(asdict(draft))).hexdigest()
    replayed = _replayed(ports, spec, key, body)
    if replayed:
        return replayed
    changes = Changes()
    playground = _add(ports, changes, spec, by, key)
    if key:
        run = playground.key
        record = IdempotencyRecord(spec.machine.project, MUTATION, key, body, run.job, run.attempt, ports.now())
        changes.idempotency.append(record)
    try:
        apply(ports, changes)
    except StaleRevision:
        replayed = _replayed(ports, spec, key, body)
        if replayed is None:
            raise
        return replayed
    return Created(SubmitStatus.CREATED, load_playground(ports, playground.id))


def _checked(ports: Ports, draft: PlaygroundDraft, key: str | None) -> PlaygroundSpec:
    problems: list[Problem] = key_problems(key)
    try:
        spec = freeze_playground(draft, ports.fleet.defaults())
    except SpecRefused as refused:
        raise SpecRefused([*refused.problems, *problems]) from None
    if problems:
        raise SpecRefused(problems)
    return spec


def _replayed(ports: Ports, spec: PlaygroundSpec, key: str | None, body: str) -> Created | None:
    record = ports.store.idempotency(spec.machine.project, MUTATION, key) if key is not None else None
    if record is None:
        return None
    if record.body_sha256 != body:
        message = f"The idempotency key was used for playground {record.job} with another body; use a new key."
        raise Conflict([Problem("CONFLICT", ("idempotencyKey",), message)], record.job)
    return Created(SubmitStatus.REPLAYED, load_playground(ports, PlaygroundId(record.job)))


def _add(ports: Ports, changes: Changes, spec: PlaygroundSpec, by: Actor, key: str | None) -> Playground:
    at = ports.now()
    playground = Playground(
        playground_id(ports.random()),
        spec,
        PlaygroundState.STARTING,
        at,
        by,
        at,
        new_clocks(spec, at),
        idempotency_key=key,
    )
    detail = ActionRequested(Action.CREATE, by)
    message = f"{by.name} asked for it."
    changes.entries.append(Entry(f"event-{ports.random()}", playground.key, Severity.INFO, message, at, at, detail))
    write_playground(changes, None, playground, at, ports.random)
    changes.commands.append(command(ports, CommandKind.START_PLAYGROUND, playground))
    return playground
