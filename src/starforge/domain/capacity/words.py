"""Numbers that decide, as people read them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from starforge.domain.capacity.nodes import NodeView, Room
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


def room_now(group: Machines, found: SeriesGpus | None, rooms: Mapping[str, Room]) -> str:
    """What decides where `rooms` are left of a series, for example `2 of 4 GPUs are free, 2 are blocked: node-b is
    cordoned`."""
    if found is None:
        return f"there is no series {group.series}"
    short = None if _gpus_decide(group, rooms) else _short_of(group, rooms)
    return f"{_gpus_free(group.series, found, rooms)}{f', but {short}' if short else ''}"


def _gpus_free(series: str, found: SeriesGpus, rooms: Mapping[str, Room]) -> str:
    left = {node.view.name: max(0, rooms.get(node.view.name, Room()).gpus) for node in found.nodes}
    spoken_for = sum(max(0, node.free - left[node.view.name]) for node in found.nodes)
    free, largest = found.free - spoken_for, max((min(one.free, left[one.view.name]) for one in found.nodes), default=0)
    said = f"{found.free} of {found.total} {series} GPUs {'is' if found.free == 1 else 'are'} free"
    if spoken_for:
        said += f", {spoken_for} of them for machines that come first"
    if free and largest < free:
        said += f", {largest} at most on one node"
    if found.blocked and found.causes:
        why = found.causes[0].message.rstrip(".")
        said += f", {found.blocked} {'is' if found.blocked == 1 else 'are'} blocked: {why}"
    return said


def _gpus_decide(group: Machines, rooms: Mapping[str, Room]) -> bool:
    return bool(group.each.gpus) and _fit(group, Room(group.each.gpus), rooms) < group.count


def _short_of(group: Machines, rooms: Mapping[str, Room]) -> str:
    """What else than GPUs is lacking on nodes that have enough of those."""
    each = group.each
    able = {name: room for name, room in rooms.items() if room.gpus >= each.gpus}
    where = "a node with enough free GPUs" if each.gpus else "an open node"
    if _fit(group, Room(each.gpus, cpu_millis=each.cpu_millis), able) < group.count:
        most = max((room.cpu_millis for room in able.values()), default=0)
        return f"a machine needs {_cpus(each.cpu_millis)} CPUs, and {where} has {_cpus(most)} left at most"
    if _fit(group, Room(each.gpus, memory=each.memory), able) < group.count:
        most = max((room.memory for room in able.values()), default=0)
        need, has = show_bytes(each.memory), show_bytes(max(0, most))
        return f"a machine needs {need} of memory, and {where} has {has} left at most"
    if _fit(group, Room(each.gpus, pods=each.pods), able) < group.count:
        return "their nodes have no room for so many more Pods"
    return "no node has enough of GPUs, CPU, memory and Pods together"


def _fit(group: Machines, each: Room, rooms: Mapping[str, Room]) -> int:
    return len(as_many_as_fit(replace(group, each=each), rooms))


def _cpus(millis: int) -> str:
    return f"{max(0, millis) / 1000:g}"


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
        need = _cpus(group.each.cpu_millis)
        return f"no {group.series} node has {need} CPUs for one: the most are {_cpus(cpus)}"
    memory = max(view.allocatable.memory for view in nodes)
    if memory < group.each.memory:
        most = show_bytes(memory)
        return f"no {group.series} node has {show_bytes(group.each.memory)} of memory for one: the most is {most}"
    fits = len(as_many_as_fit(group, empty_rooms(nodes)[group.series]))
    return f"if all {group.series} nodes were empty, {fits} of them would fit"
