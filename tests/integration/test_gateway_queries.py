"""What can be read over a real gateway."""

import hashlib
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from sqlalchemy import event

from starforge.adapters.store import SqlStore
from tests.integration.gateway import PATIENCE_S, Gateway, Refused, platform

COUNT = 9
JOBS = """
query($filter: JobFilter, $orderBy: JobOrder, $first: Int, $after: String, $last: Int, $before: String) {
  jobs(filter: $filter, orderBy: $orderBy, first: $first, after: $after, last: $last, before: $before) {
    nodes { id name priority gpus createdAt endedAt } edges { cursor node { id } } totalCount totalCountExact
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
  }
}
"""
TABLE = """
query($first: Int!) {
  jobs(first: $first) {
    totalCount totalCountExact
    nodes {
      id state reason { code } progress { step metrics { name value } } podCounts { ready }
      pods { name logSources { key } } attempts { number state } history { state } logSources { key pod { name } }
      pools { name pods { name } podCounts { running } } capsule { digest } logArchive { lines }
    }
  }
}
"""
IDS = """
query($id: ID!) {
  job(id: $id) {
    id attempts { id job { id } } pods { id name } logSources { id key } capsule { id digest }
    events(first: 100) { nodes { id type workload { id } } }
  }
}
"""
NODES = "query($ids: [ID!]!) { nodes(ids: $ids) { __typename id } }"
CONTENTS = """
query($id: ID!, $pathPrefix: String, $first: Int, $after: String, $last: Int, $before: String) {
  job(id: $id) {
    capsule {
      digest files bytes transportSha256 download { url method }
      contents(pathPrefix: $pathPrefix, first: $first, after: $after, last: $last, before: $before) {
        totalCount nodes { path bytes sha256 } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
      }
    }
  }
}
"""
METRICS = """
query($id: ID!, $names: [String!], $maxPoints: Int! = 500, $bucket: MetricBucket! = MEAN, $fromStep: BigInt) {
  job(id: $id) {
    metricNames progress { step metrics { name value } }
    metrics(names: $names, maxPoints: $maxPoints, bucket: $bucket, fromStep: $fromStep) {
      name reported downsampled steps seconds values minimums maximums nonFinites latest { step value }
    }
  }
}
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    cache = tmp_path_factory.getbasetemp() / "runner"
    with platform(tmp_path_factory.mktemp("platform"), cache) as there, there.gateway() as running:
        yield running


@pytest.fixture(scope="module")
def jobs(gateway: Gateway) -> list[str]:
    """Jobs in the order of their creation, all of which have ended."""
    ids = [
        gateway.submit(
            name=f"run {number % 3}", priority=number % 4, labels=[{"key": "number", "value": str(number % 2)}],
            code={"files": [{"path": path, "content": "x = 1\n"} for path in ("train.py", "lib/a.py", "lib/b.py")]},
        )
        for number in range(COUNT)
    ]  # fmt: skip
    for one in ids:
        gateway.finished(one)
    return ids


def page(gateway: Gateway, **arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = gateway.ask(JOBS, **arguments)["jobs"]
    return found


def ids(found: dict[str, Any]) -> list[str]:
    return [node["id"] for node in found["nodes"]]


# --- connections ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["CREATED_AT", "UPDATED_AT", "STARTED_AT", "ENDED_AT", "NAME", "PRIORITY", "GPUS"])
@pytest.mark.parametrize("direction", ["ASC", "DESC"])
def test_pages_in_both_directions_give_every_job_once(
    gateway: Gateway, jobs: list[str], field: str, direction: str
) -> None:
    order = {"field": field, "direction": direction}
    everything = ids(page(gateway, orderBy=order, first=100))
    assert sorted(everything) == sorted(jobs)
    forward: list[str] = []
    cursor, more = None, True
    while more:
        found = page(gateway, orderBy=order, first=4, after=cursor)
        assert found["totalCount"] == COUNT
        assert found["totalCountExact"]
        assert [edge["node"]["id"] for edge in found["edges"]] == ids(found)
        forward += ids(found)
        cursor, more = found["pageInfo"]["endCursor"], found["pageInfo"]["hasNextPage"]
    backward: list[str] = []
    cursor, more = None, True
    while more:
        found = page(gateway, orderBy=order, last=4, before=cursor)
        backward = ids(found) + backward
        cursor, more = found["pageInfo"]["startCursor"], found["pageInfo"]["hasPreviousPage"]
    assert forward == backward == everything


def test_jobs_come_newest_first(gateway: Gateway, jobs: list[str]) -> None:
    assert ids(page(gateway, first=100)) == jobs[::-1]


@pytest.mark.parametrize(
    ("filter_", "numbers"),
    [
        ({"namePrefix": "run 1"}, [1, 4, 7]),
        ({"labels": [{"key": "number", "values": ["1"]}]}, [1, 3, 5, 7]),
        ({"labels": [{"key": "number", "operator": "NOT_IN", "values": ["1"]}]}, [0, 2, 4, 6, 8]),
        ({"labels": [{"key": "absent", "operator": "EXISTS"}]}, []),
        ({"outcomes": ["SUCCEEDED"], "active": False}, list(range(COUNT))),
        ({"active": True}, []),
        ({"states": []}, []),
        ({"projects": ["default"], "series": ["h200"]}, list(range(COUNT))),
        ({"projects": ["other"]}, []),
        ({"createdBy": ["bootstrap"]}, list(range(COUNT))),
        ({"createdAfter": "2000-01-01T00:00:00Z", "endedBefore": "2100-01-01T00:00:00Z"}, list(range(COUNT))),
        ({"createdAfter": "2100-01-01T00:00:00Z"}, []),
    ],
)
def test_filters(gateway: Gateway, jobs: list[str], filter_: dict[str, Any], numbers: list[int]) -> None:
    found = page(gateway, filter=filter_, first=100)
    assert ids(found) == [jobs[number] for number in reversed(numbers)]
    assert found["totalCount"] == len(numbers)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"first": 0},
        {"first": 101},
        {"first": 1, "last": 1},
        {"first": 1, "filter": {"ids": ["x"] * 101}},
        {"first": 1, "filter": {"labels": [{"key": "a", "operator": "EXISTS", "values": ["1"]}]}},
        {"first": 1, "filter": {"labels": [{"key": "a"}]}},
        {"first": 1, "filter": {"createdAfter": "2026-01-01"}},
    ],
)
def test_pages_that_can_not_be(gateway: Gateway, arguments: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        page(gateway, **arguments)
    assert refused.value.code == "BAD_USER_INPUT"


@pytest.mark.usefixtures("jobs")
def test_a_cursor_of_another_order_is_refused(gateway: Gateway) -> None:
    cursor = page(gateway, first=1, orderBy={"field": "NAME"})["pageInfo"]["endCursor"]
    for after in (cursor, "nonsense"):
        with pytest.raises(Refused) as refused:
            page(gateway, first=1, after=after, orderBy={"field": "CREATED_AT"})
        assert refused.value.code == "CURSOR_INVALID"


# --- objects by id ----------------------------------------------------------------------------------------------------


def every_id(gateway: Gateway, job: str) -> dict[str, str]:
    """The id of everything about a job, and what it is of."""
    found = gateway.ask(IDS, id=job)["job"]
    kinds = {found["id"]: "Job", found["capsule"]["id"]: "Capsule"}
    for field, kind in (("attempts", "Attempt"), ("pods", "Pod"), ("logSources", "LogSource")):
        assert found[field]
        kinds |= {one["id"]: kind for one in found[field]}
    assert {one["workload"]["id"] for one in found["events"]["nodes"]} == {job}
    return kinds | {one["id"]: "Event" for one in found["events"]["nodes"]}


def test_everything_can_be_fetched_again_by_its_id(gateway: Gateway, jobs: list[str]) -> None:
    kinds = every_id(gateway, jobs[0])
    found = gateway.ask(NODES, ids=list(kinds))["nodes"]
    assert [node["id"] for node in found] == list(kinds)
    for node, kind in zip(found, kinds.values(), strict=True):
        assert node["__typename"].endswith(kind)
        assert gateway.ask("query($id: ID!) { node(id: $id) { id } }", id=node["id"])["node"] == {"id": node["id"]}


@pytest.mark.parametrize(
    "id_",
    [
        "", "x", ".", "job", "job-", "job-none", "job.1", "event-none", "capsule.", "capsule.none",
        "attempt.job-none.1", "attempt.job-none", "attempt.job-none.x", "attempt.job-none.²",
        "attempt.job-none." + "9" * 5000,
        "pod.job-none.1.x", "log.job-none.1.driver", "pod", "log...", "node.a.1.b", "\x00", "job-\x00",
    ],
)  # fmt: skip
def test_what_is_not_there_is_null(gateway: Gateway, jobs: list[str], id_: str) -> None:
    assert gateway.ask(NODES, ids=[id_, jobs[0]])["nodes"] == [None, {"__typename": "Job", "id": jobs[0]}]
    assert gateway.ask("query($id: ID!) { job(id: $id) { id } node(id: $id) { id } }", id=id_) == {
        "job": None,
        "node": None,
    }


def test_too_many_ids(gateway: Gateway) -> None:
    with pytest.raises(Refused) as refused:
        gateway.ask(NODES, ids=["x"] * 101)
    assert refused.value.code == "BAD_USER_INPUT"


# --- how often the database is asked ----------------------------------------------------------------------------------


@contextmanager
def statements(gateway: Gateway) -> Iterator[list[str]]:
    """The statements of the gateway's own connection, but for those about the feed."""
    store = gateway.parts.ports.store
    assert isinstance(store, SqlStore)
    seen: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "FROM feed" not in statement and not statement.startswith(("BEGIN", "PRAGMA")):
            seen.append(statement)

    event.listen(store.database.engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(store.database.engine, "before_cursor_execute", note)


def test_a_table_of_jobs_asks_as_often_for_many_as_for_one(gateway: Gateway, jobs: list[str]) -> None:
    asked = []
    gateway.ask(TABLE, first=COUNT)  # what was read of a job is kept until it changes
    for first in (1, COUNT):
        with statements(gateway) as seen:
            nodes = gateway.ask(TABLE, first=first)["jobs"]["nodes"]
        assert len(nodes) == first
        assert all(node["pods"] and node["logSources"] and node["capsule"] and node["attempts"] for node in nodes)
        asked.append(len(seen))
    assert asked[0] == asked[1] <= 7, seen


def test_objects_by_id_are_asked_for_together(gateway: Gateway, jobs: list[str]) -> None:
    asked = []
    for some in (jobs[:1], jobs):
        kinds = [list(every_id(gateway, job)) for job in some]
        with statements(gateway) as seen:
            fresh = f"{NODES} # {len(some)}"  # so that it is no answer that is kept
            gateway.ask(fresh, ids=[one for each in kinds for one in each][:100])
        asked.append(len(seen))
    assert asked[0] == asked[1] <= 6


# --- capsules ---------------------------------------------------------------------------------------------------------


def test_the_files_of_a_capsule(gateway: Gateway, jobs: list[str]) -> None:
    capsule = gateway.ask(CONTENTS, id=jobs[0], first=100)["job"]["capsule"]
    files = capsule["contents"]["nodes"]
    paths = [file["path"] for file in files]
    assert paths == sorted(paths)
    assert set(paths) >= {"train.py", "lib/a.py", "lib/b.py", "starforge.py", ".starforge/runner.pex"}
    assert (
        next(file for file in files if file["path"] == "train.py")["sha256"] == hashlib.sha256(b"x = 1\n").hexdigest()
    )
    assert capsule["contents"]["totalCount"] == len(files)
    again: list[str] = []
    cursor, more = None, True
    while more:
        found = gateway.ask(CONTENTS, id=jobs[0], first=2, after=cursor)["job"]["capsule"]["contents"]
        again += [file["path"] for file in found["nodes"]]
        cursor, more = found["pageInfo"]["endCursor"], found["pageInfo"]["hasNextPage"]
    assert again == paths
    found = gateway.ask(CONTENTS, id=jobs[0], last=2)["job"]["capsule"]["contents"]
    assert [file["path"] for file in found["nodes"]] == paths[-2:]
    before = gateway.ask(CONTENTS, id=jobs[0], last=2, before=found["pageInfo"]["startCursor"])
    assert [file["path"] for file in before["job"]["capsule"]["contents"]["nodes"]] == paths[-4:-2]
    below = gateway.ask(CONTENTS, id=jobs[0], first=9, pathPrefix="lib/")["job"]["capsule"]["contents"]
    assert [file["path"] for file in below["nodes"]] == ["lib/a.py", "lib/b.py"]


def test_a_capsule_is_downloaded_whole(gateway: Gateway, jobs: list[str]) -> None:
    capsule = gateway.ask(CONTENTS, id=jobs[0], first=1)["job"]["capsule"]
    answer = httpx.get(capsule["download"]["url"], timeout=PATIENCE_S)
    assert answer.status_code == 200
    assert hashlib.sha256(answer.content).hexdigest() == capsule["transportSha256"]
    assert len(answer.content) == capsule["bytes"]
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.read("capsule/train.py") == b"x = 1\n"


@pytest.mark.parametrize("seconds", [59, 3601, -1])
def test_links_have_a_life_within_limits(gateway: Gateway, jobs: list[str], seconds: int) -> None:
    query = "query($id: ID!, $s: Int!) { job(id: $id) { capsule { digest download(expiresInSeconds: $s) { url } } } }"
    answer = gateway.answer(query, id=jobs[0], s=seconds)
    assert answer["data"]["job"]["capsule"]["download"] is None
    assert answer["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"


def test_a_capsule_that_is_gone_blanks_its_own_field_alone(gateway: Gateway) -> None:
    job = gateway.submit(code={"files": [{"path": "gone.py", "content": "pass\n"}]})
    gateway.finished(job)
    digest = gateway.ask(CONTENTS, id=job, first=1)["job"]["capsule"]["digest"]
    gateway.parts.ports.objects.delete(f"capsules/{digest}.zip")
    answer = gateway.answer(CONTENTS, id=job, first=1)
    assert answer["data"]["job"]["capsule"]["digest"] == digest
    assert answer["data"]["job"]["capsule"]["contents"] is None
    assert answer["errors"][0]["extensions"]["code"] == "NOT_FOUND"
    assert answer["errors"][0]["path"] == ["job", "capsule", "contents"]


# --- metrics ----------------------------------------------------------------------------------------------------------


def test_curves(gateway: Gateway, jobs: list[str]) -> None:
    job = gateway.ask(METRICS, id=jobs[0])["job"]
    assert set(job["metricNames"]) >= {"loss", "accuracy"}
    curves = {curve["name"]: curve for curve in job["metrics"]}
    assert list(curves) == sorted(job["metricNames"])
    loss = curves["loss"]
    assert loss["reported"] == len(loss["steps"]) == job["progress"]["step"]
    assert loss["steps"] == list(range(1, loss["reported"] + 1))
    assert not loss["downsampled"]
    assert loss["seconds"] == sorted(loss["seconds"])
    assert loss["latest"]["step"] == loss["steps"][-1]


def test_curves_are_thinned_and_cut(gateway: Gateway, jobs: list[str]) -> None:
    whole = gateway.ask(METRICS, id=jobs[0], names=["accuracy"])["job"]["metrics"][0]
    thin = gateway.ask(METRICS, id=jobs[0], names=["accuracy"], maxPoints=5, bucket="LAST")["job"]["metrics"][0]
    assert thin["downsampled"]
    assert len(thin["values"]) == 5
    assert thin["values"][-1] == whole["values"][-1]
    assert max(thin["maximums"]) == max(whole["values"])
    late = gateway.ask(METRICS, id=jobs[0], names=["accuracy"], fromStep=10)["job"]["metrics"][0]
    assert late["values"] == whole["values"][9:]
    assert gateway.ask(METRICS, id=jobs[0], names=["nothing"])["job"]["metrics"] == []


@pytest.mark.parametrize("arguments", [{"maxPoints": 1}, {"maxPoints": 2001}, {"names": ["x"] * 21}])
def test_curves_that_can_not_be(gateway: Gateway, jobs: list[str], arguments: dict[str, Any]) -> None:
    answer = gateway.answer(METRICS, id=jobs[0], **arguments)
    assert answer["errors"][0]["extensions"]["code"] == "BAD_USER_INPUT"


# --- the feed ---------------------------------------------------------------------------------------------------------


def test_the_feed_is_read_before_anything_else(gateway: Gateway) -> None:
    query = "{ jobs(first: 1) { nodes { id } } feed { cursor at retentionSeconds } }"
    feed = gateway.ask(query)["feed"]
    assert feed["retentionSeconds"] == 86400
    assert feed["at"].endswith("Z")


def test_it_says_whether_it_can_work(gateway: Gateway) -> None:
    base = gateway.url.removesuffix("/graphql")
    assert httpx.get(f"{base}/livez", timeout=PATIENCE_S).status_code == 200
    assert httpx.get(f"{base}/readyz", timeout=PATIENCE_S).status_code == 200
