"""Creates the run of a job on its fleet, or adopts the one that an earlier try created."""

import hashlib
from dataclasses import replace
from datetime import datetime, timedelta

from starforge.domain.actions.apply import apply, command, guarded, load
from starforge.domain.capsule import capsule_key
from starforge.domain.changes import CapsuleRecord, Changes, Lease
from starforge.domain.deadlines import ClockKind
from starforge.domain.errors import Defect, FleetRefused, StaleRevision
from starforge.domain.job import Job, JobOutcome, JobState, RunIdentity, advance, finish
from starforge.domain.names import JobId, RunKey, installation_id, run_name
from starforge.domain.ports import Audience, LaunchOrder, Ports
from starforge.domain.reason import Reason
from starforge.domain.telling import write
from starforge.domain.timeline import CommandKind

# Of many tries, the first ones may have reached a Pod, and so may the last.
NONCES_KEPT = 10


def launch(ports: Ports, lease: Lease) -> None:
    """LAUNCH: from LAUNCHING to PENDING; FAILED with the fleet's reason if it refuses for good."""
    job = load(ports, lease.command.run.job)
    if job.state is not JobState.LAUNCHING or job.run != lease.command.run:
        return apply(ports, Changes(done=True), lease)
    nonce = ports.random()
    job = _remember_nonce(ports, job, nonce)
    order = _order(ports, job, nonce)
    _is_wanted(ports, job)
    try:
        identity = ports.fleet.launch(order)
    except FleetRefused as refused:
        return _refuse(ports, job, refused.reason, lease)
    try:
        _launched(ports, job.id, identity, lease)
    except StaleRevision:
        _remove_orphan(ports, job)
        raise


def _is_wanted(ports: Ports, job: Job) -> None:
    """Ask at the last moment: a worker that was held up for longer than its lease must create nothing."""
    apply(ports, Changes())
    found = load(ports, job.id)
    if found.state is not JobState.LAUNCHING or found.run != job.run:
        raise StaleRevision(f"{job.run} is not to be launched any more; look again.")


def _remove_orphan(ports: Ports, job: Job) -> None:
    """Remove the run if it came after everything of its attempt was proven gone, as nobody else looks again."""
    found = load(ports, job.id)
    if found.run != job.run or found.attempt.released_at:
        ports.fleet.delete(job.run)


def nonce_hash(nonce: str) -> str:
    """What is stored of a nonce: a runner's line counts if the hash of its nonce is known."""
    return hashlib.sha256(nonce.encode()).hexdigest()


def claim_key(run: RunKey) -> str:
    """Object whose creation allows the attempt's one start."""
    return f"logs/{run.job}/{run.attempt}/claim"


def _remember_nonce(ports: Ports, job: Job, nonce: str) -> Job:
    changes = Changes()
    known = job.attempt.nonce_hashes
    hashes = (*known[:NONCES_KEPT], *known[NONCES_KEPT:][-NONCES_KEPT:], nonce_hash(nonce))
    changes.job(job.with_attempt(replace(job.attempt, nonce_hashes=hashes)))
    apply(ports, changes)
    return load(ports, job.id)


def _order(ports: Ports, job: Job, nonce: str) -> LaunchOrder:
    record = _capsule(ports, job)
    longest = ports.objects.longest_signature_s
    seconds = min(ports.fleet.signature_seconds(job.spec) or longest, longest)
    until = _claim_until(job, ports.now(), longest)
    claim_s = (until - ports.now()).total_seconds()
    claim = ports.objects.sign_put(claim_key(job.run), seconds=claim_s, audience=Audience.POD, only_new=True)
    capsule = ports.objects.sign_get(capsule_key(record.digest), seconds=seconds, audience=Audience.POD)
    return LaunchOrder(
        job.run,
        run_name(job.spec.name, job.run),
        job.spec,
        capsule,
        record.digest,
        record.transport_sha256,
        claim,
        until,
        nonce,
        ports.store.installation(new=installation_id(ports.random())),
    )


def _capsule(ports: Ports, job: Job) -> CapsuleRecord:
    record = ports.store.capsules([job.capsule])[job.capsule] if job.capsule else None
    if record is None:
        raise Defect(f"{job.id} is {job.state} without a Capsule.")
    return record


def _claim_until(job: Job, now: datetime, longest_s: float) -> datetime:
    limit = next(clock.limit_s for clock in job.attempt.clocks if clock.kind is ClockKind.PRE_RUNNING)
    return now + timedelta(seconds=min(limit + 600 if limit else longest_s, longest_s))


def _launched(ports: Ports, job: JobId, identity: RunIdentity, lease: Lease) -> None:
    def decide(found: Job) -> Changes:
        at = ports.now()
        changes = Changes(done=True)
        if not found.decided and found.run == lease.command.run:
            known = found.with_attempt(replace(found.attempt, run=identity))
            write(changes, found, advance(known, JobState.PENDING, at), at, ports.random)
        return changes

    guarded(ports, job, decide, lease)


def _refuse(ports: Ports, job: Job, why: Reason, lease: Lease) -> None:
    at = ports.now()
    changes = Changes(done=True)
    write(changes, job, finish(job, JobOutcome.FAILED, why, at), at, ports.random)
    changes.commands.append(command(ports, CommandKind.ARCHIVE, job))
    apply(ports, changes, lease)
