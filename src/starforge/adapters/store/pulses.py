"""Who observes a fleet, and what goes on without a pause."""

from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, case, select

from starforge.adapters.store.columns import Moment
from starforge.adapters.store.statements import insert
from starforge.adapters.store.tables import OBSERVER, PULSE
from starforge.domain.changes import Watcher
from starforge.domain.errors import Superseded


def renew_observer(connection: Connection, fleet: str, *, holder: str, at: datetime, lease_s: float) -> bool:
    new = insert(connection, OBSERVER)
    statement = new.on_conflict_do_update(
        index_elements=["fleet"],
        set_={"holder": new.excluded["holder"], "until": new.excluded["until"]},
        where=(OBSERVER.c.holder == holder) | (OBSERVER.c.until <= at),
    ).returning(OBSERVER.c.fleet)
    values = {"fleet": fleet, "holder": holder, "until": at + timedelta(seconds=lease_s)}
    return connection.execute(statement, values).first() is not None


def check_watcher(connection: Connection, watcher: Watcher | None) -> None:
    """Superseded unless they have the lease, or had it last; nobody takes it before the transaction ends."""
    if watcher is None:
        return
    held = select(OBSERVER.c.fleet).where(OBSERVER.c.fleet == watcher.fleet, OBSERVER.c.holder == watcher.holder)
    if connection.execute(held.with_for_update(read=True)).first() is None:
        raise Superseded(f"Fleet {watcher.fleet} is observed by somebody else now; what was seen is left to them.")


def pulse(connection: Connection, name: str, *, at: datetime, pause_s: float) -> datetime:
    """Note that it went on at `at`; a pause longer than `pause_s` begins it anew."""
    new = insert(connection, PULSE)
    paused = PULSE.c.at < bindparam("not_before", type_=Moment())
    statement = new.on_conflict_do_update(
        index_elements=["name"],
        set_={
            "since": case((paused, new.excluded["since"]), else_=PULSE.c.since),
            "at": case((PULSE.c.at > new.excluded["at"], PULSE.c.at), else_=new.excluded["at"]),
        },
    ).returning(PULSE.c.since)
    values = {"name": name, "since": at, "at": at, "not_before": at - timedelta(seconds=pause_s)}
    since: datetime = connection.execute(statement, values).scalar_one()
    return since
