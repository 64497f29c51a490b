"""Filters as conditions; every one is backed by an index."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Column, ColumnElement, or_, select

from starforge.adapters.store.hints import Unlikely
from starforge.adapters.store.tables import JOB, JOB_LABEL, JOB_SERIES, TIMELINE
from starforge.adapters.store.timeline import RANKS
from starforge.domain.queries import EventFilter, JobFilter, LabelOperator, LabelSelector
from starforge.domain.teardown import HOLDS_TEARDOWN

_Condition = ColumnElement[bool]
_SURROGATES = (0xD800, 0xE000)
_LAST = 0x10FFFF


def job_conditions(which: JobFilter) -> Iterator[_Condition]:
    """Conditions on the table of jobs."""
    columns = JOB.c
    yield from _one_of(columns.id, which.ids)
    yield from _one_of(columns.state, which.states)
    yield from _one_of(columns.outcome, which.outcomes)
    yield from _reasons(which)
    yield from _one_of(columns.project, which.projects)
    yield from _one_of(columns.fleet, which.fleets)
    yield from _one_of(columns.created_by, which.created_by)
    yield from _one_of(columns.idempotency_key, which.idempotency_keys)
    yield from _between(columns.created_at, which.created_after, which.created_before)
    yield from map(Unlikely, _between(columns.ended_at, which.ended_after, which.ended_before))
    yield from _other_job_conditions(which)


def _reasons(which: JobFilter) -> Iterator[_Condition]:
    """The reason of the job itself, or of its teardown, which only is asked for if it may have one of them."""
    own, held = JOB.c.reason, JOB.c.teardown_reason
    if which.reasons and HOLDS_TEARDOWN in which.reasons:
        codes = [str(code) for code in which.reasons]
        yield or_(own.in_(codes), held.in_([str(HOLDS_TEARDOWN)])) if len(codes) > 1 else held.in_(codes)
    else:
        yield from _one_of(own, which.reasons)


def _other_job_conditions(which: JobFilter) -> Iterator[_Condition]:
    if which.active is not None:
        yield JOB.c.active.is_(which.active)
    if which.code is not None:
        yield JOB.c.code == which.code
    if which.name_prefix:
        yield from _between(JOB.c.name, which.name_prefix, _after_prefix(which.name_prefix))
    if which.series is not None:
        yield JOB.c.id.in_(select(JOB_SERIES.c.job_id).where(JOB_SERIES.c.series.in_(which.series)))
    yield from map(_label, which.labels)


def _label(selector: LabelSelector) -> _Condition:
    having = select(JOB_LABEL.c.job_id).where(JOB_LABEL.c.key == selector.key)
    if selector.operator in (LabelOperator.IN, LabelOperator.NOT_IN):
        having = having.where(JOB_LABEL.c.value.in_(selector.values))
    if selector.operator in (LabelOperator.IN, LabelOperator.EXISTS):
        return JOB.c.id.in_(having)
    return JOB.c.id.not_in(having)


def event_conditions(which: EventFilter) -> Iterator[_Condition]:
    """Conditions on the timeline."""
    columns = TIMELINE.c
    yield from _one_of(columns.job_id, which.jobs)
    yield from _one_of(columns.type, which.types)
    yield from _one_of(columns.project, which.projects)
    yield from _one_of(columns.in_fleet, which.fleets)
    yield from _one_of(columns.kubernetes_reason, which.kubernetes_reasons)
    if which.min_severity is not None:
        yield columns.severity.in_([rank for rank in RANKS.values() if rank >= RANKS[which.min_severity]])
    if which.attempt is not None:
        yield columns.attempt == which.attempt
    yield from _between(columns.last_at, which.since, None)
    yield from _between(columns.first_at, None, which.until)


def _one_of(column: Column[Any], values: tuple[str, ...] | None) -> Iterator[_Condition]:
    if values is not None:
        yield column.in_([str(value) for value in values])


def _between(column: Column[Any], first: Any, end: Any) -> Iterator[_Condition]:
    if first is not None:
        yield column >= first
    if end is not None:
        yield column < end


def _after_prefix(prefix: str) -> str | None:
    """The smallest text that sorts after every text with the prefix; None if there is none."""
    head = prefix.rstrip(chr(_LAST))
    if not head:
        return None
    following = ord(head[-1]) + 1
    return head[:-1] + chr(_SURROGATES[1] if following == _SURROGATES[0] else following)
