"""Writing and reading playgrounds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, bindparam, select, update

from starforge.adapters.store.filters import one_of
from starforge.adapters.store.pages import Order, read_page
from starforge.adapters.store.statements import all_added
from starforge.adapters.store.tables import PLAYGROUND
from starforge.domain.changes import PlaygroundWrite
from starforge.domain.errors import StaleRevision
from starforge.domain.names import PlaygroundId
from starforge.domain.playground import Playground
from starforge.domain.queries import Page, PlaygroundFilter, Window

_READ = PLAYGROUND.c.revision == bindparam("read_revision")
_REPLACE = update(PLAYGROUND).where(PLAYGROUND.c.id == bindparam("read_id"), _READ)
_NEWEST = Order(PLAYGROUND.c.id, PLAYGROUND.c.created_at, descending=True)


def write_playgrounds(connection: Connection, writes: Sequence[PlaygroundWrite]) -> None:
    """Each in place of the revision that it was made from, StaleRevision if that is gone."""
    playgrounds = [write.playground for write in writes]
    if not all_added(connection, PLAYGROUND, [_birth(one) | _values(one) for one in playgrounds if not one.revision]):
        raise StaleRevision("A playground of this id is there already; load it and decide again.")
    for one in playgrounds:
        read = {"read_id": one.id, "read_revision": one.revision}
        if one.revision and connection.execute(_REPLACE, _values(one) | read).rowcount != 1:
            raise StaleRevision(f"{one.id} is not at revision {one.revision} any more; load it and decide again.")


def _birth(playground: Playground) -> dict[str, object]:
    machine = playground.spec.machine
    return {
        "id": playground.id,
        "project": machine.project,
        "fleet": machine.fleet,
        "created_by": playground.created_by.name,
        "created_at": playground.created_at,
        "from_job": playground.spec.from_job,
    }


def _values(playground: Playground) -> dict[str, object]:
    return {
        "revision": playground.revision + 1,
        "state": playground.state.value,
        "active": not playground.ended,
        "due_at": playground.due_at,
        "document": playground,
    }


def playgrounds_by_id(connection: Connection, playgrounds: Sequence[PlaygroundId]) -> Mapping[PlaygroundId, Playground]:
    rows = connection.execute(select(PLAYGROUND).where(PLAYGROUND.c.id.in_(playgrounds)))
    return {one.id: one for one in map(_playground_of, rows)}


def playground_page(connection: Connection, which: PlaygroundFilter, window: Window) -> Page[Playground]:
    rows = select(PLAYGROUND).where(*_conditions(which))
    return read_page(connection, rows, _NEWEST, window, _playground_of)


def overdue_playgrounds(connection: Connection, *, at: datetime, limit: int) -> Sequence[PlaygroundId]:
    columns = PLAYGROUND.c
    statement = select(columns.id).where(columns.due_at <= at).order_by(columns.due_at, columns.id).limit(limit)
    return connection.execute(statement).scalars().all()


def _playground_of(row: Row[Any]) -> Playground:
    found: Playground = row.document
    return replace(found, revision=row.revision)


def _conditions(which: PlaygroundFilter) -> Iterator[ColumnElement[bool]]:
    columns = PLAYGROUND.c
    yield from one_of(columns.id, which.ids)
    yield from one_of(columns.state, which.states)
    yield from one_of(columns.project, which.projects)
    yield from one_of(columns.fleet, which.fleets)
    yield from one_of(columns.created_by, which.created_by)
    if which.active is not None:
        yield columns.active.is_(which.active)
    if which.from_job is not None:
        yield columns.from_job == which.from_job
