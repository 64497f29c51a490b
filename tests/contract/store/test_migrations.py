"""The schema: made by migrations that several processes may run at once, and the same as the tables in the code."""

import subprocess
import sys

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, inspect

from starforge.adapters.store import SqlStore, migrate
from starforge.adapters.store.engine import normal_url
from starforge.adapters.store.tables import METADATA
from tests.contract.store.examples import a_job, save

MIGRATE = """
import sys
from starforge.adapters.store import migrate
print("ready", flush=True)
sys.stdin.readline()
migrate(sys.argv[1])
"""
FORK = """
import os, sys
from starforge.adapters.store import SqlStore
from starforge.domain.changes import Changes
from tests.contract.store.examples import a_job, save
store = SqlStore(sys.argv[1])
save(store, a_job(1))
child = os.fork()
save(store, a_job(2 if child else 3))
if not child:
    os._exit(0 if len(store.jobs_by_id([a_job(1).id, a_job(3).id])) == 2 else 1)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
assert status == 0, status
assert store.feed_bounds() == (0, 3)
store.close()
"""


def test_four_processes_migrate_at_once(empty_url: str) -> None:
    command = [sys.executable, "-W", "error", "-c", MIGRATE, empty_url]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    outputs = []
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in processes:
        outputs.append((process.communicate(timeout=120)[1], process.returncode))
    assert outputs == [("", 0)] * 4
    store = SqlStore(empty_url)
    save(store, a_job())
    assert store.feed_bounds() == (0, 1)
    store.close()


def test_migrating_again_changes_nothing(store: SqlStore, url: str) -> None:
    save(store, a_job())
    migrate(url)
    assert store.feed_bounds() == (0, 1)


def test_the_tables_are_what_the_code_says(url: str) -> None:
    engine = create_engine(normal_url(url))
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), METADATA)
    engine.dispose()
    assert differences == []


def test_every_table_of_the_code_is_there(store: SqlStore) -> None:
    assert set(METADATA.tables) <= set(inspect(store.database.engine).get_table_names())


@pytest.mark.parametrize("code", [FORK])
def test_a_forked_process_has_connections_of_its_own(url: str, code: str) -> None:
    done = subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
