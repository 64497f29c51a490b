"""Creates a playground on its fleet, or adopts what an earlier try created."""

from dataclasses import replace

from starforge.domain.actions.apply import apply
from starforge.domain.actions.playgrounds import command, guarded_playground, leased, load_playground
from starforge.domain.changes import Changes, Lease
from starforge.domain.errors import FleetRefused, StaleRevision
from starforge.domain.job import RunIdentity
from starforge.domain.names import installation_id
from starforge.domain.playground import Playground, PlaygroundState, end
from starforge.domain.playground_telling import write_playground
from starforge.domain.ports import PlaygroundOrder, Ports
from starforge.domain.reason import Reason
from starforge.domain.timeline import CommandKind


def launch_playground(ports: Ports, lease: Lease) -> None:
    """START_PLAYGROUND: have the fleet create it; FAILED with the fleet's reason if it refuses for good."""
    playground = leased(ports, lease.command.run)
    if playground.ended or playground.launched_at:
        return apply(ports, Changes(done=True), lease)
    _is_wanted(ports, playground)
    try:
        identity = ports.fleet.launch_playground(_order(ports, playground))
    except FleetRefused as refused:
        return _refuse(ports, playground, refused.reason, lease)
    try:
        guarded_playground(ports, playground.id, lambda found: _launched(ports, found, identity), lease)
    except StaleRevision:
        _remove_orphan(ports, playground)
        raise


def _order(ports: Ports, playground: Playground) -> PlaygroundOrder:
    installation = ports.store.installation(new=installation_id(ports.random()))
    return PlaygroundOrder(playground.key, playground.pod_name, playground.spec, installation)


def _is_wanted(ports: Ports, playground: Playground) -> None:
    """Ask at the last moment: a worker that was held up for longer than its lease must create nothing."""
    apply(ports, Changes())
    if load_playground(ports, playground.id).ended:
        raise StaleRevision(f"{playground.id} is not to be launched any more; look again.")


def _remove_orphan(ports: Ports, playground: Playground) -> None:
    """Remove what came after everything of it was proven gone, as nobody else looks again."""
    if load_playground(ports, playground.id).released_at:
        ports.fleet.delete(playground.key)


def _launched(ports: Ports, found: Playground, identity: RunIdentity) -> Changes:
    changes, at = Changes(done=True), ports.now()
    after = replace(found, run=identity, launched_at=found.launched_at or at)
    write_playground(changes, found, after, at, ports.random)
    return changes


def _refuse(ports: Ports, playground: Playground, why: Reason, lease: Lease) -> None:
    def decide(found: Playground) -> Changes:
        changes, at = Changes(done=True), ports.now()
        if not found.ended:
            write_playground(changes, found, end(found, PlaygroundState.FAILED, why, at), at, ports.random)
            changes.commands.append(command(ports, CommandKind.STOP_PLAYGROUND, found))
        return changes

    guarded_playground(ports, playground.id, decide, lease)
