"""Numbers that decide, as people read them."""

from collections.abc import Sequence

from starforge.domain.capacity.nodes import NodeView
from starforge.domain.capacity.packing import Machines, as_many_as_fit, empty_room, empty_rooms
from starforge.domain.capacity.view import SeriesGpus
from starforge.domain.quantities import show_bytes


def machines_in_words(group: Machines) -> str:
    """For example `Pool actors needs 4 machines with 2 b200 GPUs each`."""
    several = group.count != 1
    what = f"{group.count} machine{'s' if several else ''}"
    if not group.each.gpus:
        return f"Pool {group.pool} needs {what} on {'nodes' if several else 'a node'} of series {group.series}"
    size = f"{group.each.gpus} {group.series} GPU{'' if group.each.gpus == 1 else 's'}"
    return f"Pool {group.pool} needs {what} with {size}{' each' if several else ''}"


def gpus_free(series: str, found: SeriesGpus | None) -> str:
    """For example `2 of 4 GPUs are free, 2 are blocked: node-b is cordoned.`, without its end."""
    if found is None:
        return f"there is no series {series}"
    said = f"{found.free} of {found.total} {series} GPUs {'is' if found.free == 1 else 'are'} free"
    if found.free and found.largest_free < found.free:
        said += f", {found.largest_free} at most on one node"
    if found.blocked and found.causes:
        why = found.causes[0].message.rstrip(".")
        said += f", {found.blocked} {'is' if found.blocked == 1 else 'are'} blocked: {why}"
    return said


def why_never(group: Machines, views: Sequence[NodeView]) -> str:
    """Why machines of a pool would not fit if every node were empty."""
    needs = machines_in_words(group)
    nodes = [view for view in views if view.series == group.series]
    if not nodes:
        names = sorted({view.series for view in views if view.series})
        there = f"this fleet has {', '.join(names)}" if names else "this fleet has none"
        return f"{needs}, and there is no series {group.series}: {there}."
    return f"{needs}, and {_lacking(group, nodes)}."


def _lacking(group: Machines, nodes: Sequence[NodeView]) -> str:
    largest = max(nodes, key=lambda view: empty_room(view).gpus)
    gpus = empty_room(largest).gpus
    if gpus < group.each.gpus:
        return f"the largest {group.series} node, {largest.name}, has {gpus}"
    cpus = max(view.allocatable.cpu_millis for view in nodes)
    if cpus < group.each.cpu_millis:
        return f"no {group.series} node has {group.each.cpu_millis / 1000:g} CPUs for one: the most are {cpus / 1000:g}"
    memory = max(view.allocatable.memory for view in nodes)
    if memory < group.each.memory:
        most = show_bytes(memory)
        return f"no {group.series} node has {show_bytes(group.each.memory)} of memory for one: the most is {most}"
    fits = len(as_many_as_fit(group, empty_rooms(nodes)[group.series]))
    return f"if all {group.series} nodes were empty, {fits} of them would fit"
