"""The worlds of the actions, in which the loops of workers turn as well."""

from tests.unit.actions.conftest import empty, new_world, store, world

__all__ = ["empty", "new_world", "store", "world"]
