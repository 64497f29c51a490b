from dataclasses import replace

from starforge.adapters.local.node import OBJECT_STORE_LEAST, OBJECT_STORE_MOST, machines, node_resources
from tests.unit.local.local_orders import EVAL, TRAIN, spec


def test_one_node_has_what_all_machines_ask_for() -> None:
    node = node_resources(spec(TRAIN, EVAL))
    assert (node.cpus, node.gpus, node.memory) == (2 * 3 + 1, 2 * 4 + 1, 5 * 2**30)


def test_each_pool_is_a_resource_with_one_for_each_machine() -> None:
    assert node_resources(spec(TRAIN, EVAL)).pools == {"train": 2, "eval": 1}


def test_the_object_store_is_the_shared_memory_within_bounds() -> None:
    assert node_resources(spec(TRAIN, EVAL)).object_store_memory == 3 * 64 * 2**20
    assert node_resources(spec(replace(EVAL, shm_size="1Mi"))).object_store_memory == OBJECT_STORE_LEAST
    assert node_resources(spec(replace(EVAL, shm_size="1Ti"))).object_store_memory == OBJECT_STORE_MOST


def test_machines_are_counted_within_their_pool() -> None:
    assert [(one.pool, one.number, one.series, one.gpus) for one in machines(spec(TRAIN, EVAL))] == [
        ("train", 0, "h200", 4),
        ("train", 1, "h200", 4),
        ("eval", 0, "b200", 1),
    ]
