"""Worlds on copies of one migrated database."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from starforge.adapters.store import migrate
from tests.unit.actions.world import World


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "store.db"
    migrate(f"sqlite:///{path}")
    return path


@pytest.fixture
def new_world(template: Path, tmp_path: Path) -> Iterator[Callable[[], World]]:
    """Makes worlds that know nothing of each other."""
    worlds: list[World] = []

    def made() -> World:
        worlds.append(World(tmp_path / f"world-{len(worlds)}", template))
        return worlds[-1]

    yield made
    for world in worlds:
        world.close()


@pytest.fixture
def world(new_world: Callable[[], World]) -> World:
    return new_world()
