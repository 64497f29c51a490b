"""Mutations over a real gateway, sent as clients send them: wrong, twice, and all at once."""

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from starforge.adapters.packing.packer import CapsulePacker
from starforge.domain.capsule import InlineFile, PackedCode
from tests.integration.gateway import PATIENCE_S, SUBMIT, Gateway, Refused, a_submission, platform

CANCEL = """
mutation($id: ID!, $attempt: Int, $graceSeconds: Int, $note: String) {
  cancelJob(id: $id, attempt: $attempt, graceSeconds: $graceSeconds, note: $note) {
    status job { id state cancellation { note requestedBy { name } } }
    userErrors { __typename code field message ... on ConflictError { workload { id } } }
  }
}
"""
PREPARE = """
mutation($input: PrepareCodeInput!) {
  prepareCode(input: $input) {
    status digest upload { method url headers { name value } expiresAt } userErrors { code field message }
  }
}
"""
JOB = "query($id: ID!) { job(id: $id) { state spec { name } capsule { codeDigest files } reason { code message } } }"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    cache = tmp_path_factory.getbasetemp() / "runner"
    with platform(tmp_path_factory.mktemp("platform"), cache) as there, there.gateway() as running:
        yield running


def submit(gateway: Gateway, **options: Any) -> dict[str, Any]:
    payload: dict[str, Any] = gateway.ask(SUBMIT, input=a_submission(**options))["submitJob"]
    return payload


def cancel(gateway: Gateway, job: str, **arguments: Any) -> dict[str, Any]:
    payload: dict[str, Any] = gateway.ask(CANCEL, id=job, **arguments)["cancelJob"]
    return payload


# --- submitJob --------------------------------------------------------------------------------------------------------


def test_a_spec_is_refused_with_every_problem_and_its_path(gateway: Gateway) -> None:
    pool = {"name": "main", "series": "h200", "machines": 0, "gpusPerMachine": 65}
    env = [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}, {"name": "PATH"}]
    payload = submit(gateway, name="", pools=[pool], env=env, deadlines={"queueSeconds": -1}, fleet="moon")
    assert (payload["status"], payload["job"]) == ("REFUSED", None)
    found = {(error["code"], tuple(error["field"])) for error in payload["userErrors"]}
    assert found >= {
        ("INVALID", ("input", "spec", "name")),
        ("OUT_OF_RANGE", ("input", "spec", "pools", "0", "machines")),
        ("OUT_OF_RANGE", ("input", "spec", "pools", "0", "gpusPerMachine")),
        ("DUPLICATE", ("input", "spec", "env", "1", "name")),
        ("EXCLUSIVE", ("input", "spec", "env", "2")),
        ("OUT_OF_RANGE", ("input", "spec", "deadlines", "queueSeconds")),
        ("UNKNOWN_FLEET", ("input", "spec", "fleet")),
    }
    assert all(error["message"].endswith(".") for error in payload["userErrors"])
    assert {error["__typename"] for error in payload["userErrors"]} == {"InputError"}


@pytest.mark.parametrize("path", ["../train.py", "/etc/passwd", ".starforge/jobspec.json", "starforge.py"])
def test_code_with_a_path_that_can_not_be_is_refused(gateway: Gateway, path: str) -> None:
    payload = submit(gateway, code={"files": [{"path": path, "content": ""}]})
    assert payload["status"] == "REFUSED"
    assert payload["userErrors"][0]["field"][:2] == ["input", "code"]


@pytest.mark.parametrize("code", [{}, {"digest": "0" * 64, "files": []}, {"digest": None}])
def test_code_is_exactly_one_of_digest_and_files(gateway: Gateway, code: dict[str, Any]) -> None:
    wrong = a_submission() | {"code": code}
    with pytest.raises(Refused) as refused:
        gateway.ask(SUBMIT, input=wrong)
    assert refused.value.code == "BAD_USER_INPUT"


def test_code_that_was_never_sent_is_refused(gateway: Gateway) -> None:
    payload = submit(gateway, code={"digest": "0" * 64})
    assert [(error["code"], error["field"]) for error in payload["userErrors"]] == [
        ("CODE_NOT_FOUND", ["input", "code", "digest"])
    ]


def test_the_same_key_and_body_give_the_same_job(gateway: Gateway) -> None:
    first, again = submit(gateway, key="replay"), submit(gateway, key="replay")
    assert (first["status"], again["status"]) == ("CREATED", "REPLAYED")
    assert first["job"]["id"] == again["job"]["id"]


def test_the_same_key_with_another_body_is_a_conflict_with_the_job_in_the_way(gateway: Gateway) -> None:
    first, other = submit(gateway, key="conflict"), submit(gateway, key="conflict", name="other")
    assert (other["status"], other["job"]) == ("REFUSED", None)
    [error] = other["userErrors"]
    assert (error["__typename"], error["code"]) == ("ConflictError", "CONFLICT")
    assert error["field"] == ["input", "idempotencyKey"]
    assert error["workload"] == {"id": first["job"]["id"]}


def test_a_key_is_its_own_in_each_project(gateway: Gateway) -> None:
    jobs = {submit(gateway, key="shared", project=project)["job"]["id"] for project in ("vision", "speech")}
    assert len(jobs) == 2
    other = submit(gateway, key="shared", project="speech", name="other")
    assert other["userErrors"][0]["workload"]["id"] in jobs


def test_many_at_once_with_one_key_are_one_job(gateway: Gateway) -> None:
    with ThreadPoolExecutor(50) as pool:
        payloads = list(pool.map(lambda _: submit(gateway, key="storm"), range(50)))
    assert len({payload["job"]["id"] for payload in payloads}) == 1
    assert sorted(payload["status"] for payload in payloads) == ["CREATED"] + ["REPLAYED"] * 49
    found = gateway.ask('{ jobs(filter: { idempotencyKeys: ["storm"] }, first: 10) { totalCount } }')
    assert found["jobs"]["totalCount"] == 1


@pytest.mark.parametrize("key", ["", "x" * 129])
def test_a_key_of_the_wrong_length_is_refused(gateway: Gateway, key: str) -> None:
    [error] = submit(gateway, key=key)["userErrors"]
    assert (error["code"], error["field"]) == ("OUT_OF_RANGE", ["input", "idempotencyKey"])


# --- cancelJob --------------------------------------------------------------------------------------------------------


def test_a_running_job_is_canceled_once(gateway: Gateway) -> None:
    job = gateway.submit(outcome="FOREVER")
    gateway.running(job)
    first = cancel(gateway, job, graceSeconds=1, note="enough")
    assert (first["status"], first["userErrors"]) == ("REQUESTED", [])
    assert first["job"]["cancellation"] == {"note": "enough", "requestedBy": {"name": "bootstrap"}}
    assert cancel(gateway, job)["status"] in ("ALREADY_REQUESTED", "ALREADY_ENDED")
    ended = gateway.finished(job)
    assert (ended["state"], ended["reason"]["code"]) == ("CANCELED", "CANCELED")
    assert cancel(gateway, job)["status"] == "ALREADY_ENDED"
    assert cancel(gateway, job)["job"]["state"] == "CANCELED"


def test_a_job_that_waits_is_canceled_at_once(gateway: Gateway) -> None:
    job = gateway.submit(outcome="FOREVER")
    assert cancel(gateway, job)["status"] == "REQUESTED"
    assert gateway.finished(job)["outcome"] == "CANCELED"


def test_another_attempt_is_meant(gateway: Gateway) -> None:
    job = gateway.submit(outcome="FOREVER")
    payload = cancel(gateway, job, attempt=7)
    assert (payload["status"], payload["job"]["id"]) == ("REFUSED", job)
    [error] = payload["userErrors"]
    assert (error["__typename"], error["code"], error["field"]) == ("ConflictError", "WRONG_STATE", ["attempt"])
    assert error["workload"] == {"id": job}
    assert cancel(gateway, job, attempt=1)["status"] == "REQUESTED"


@pytest.mark.parametrize(
    ("arguments", "code", "field"),
    [
        ({"graceSeconds": -1}, "OUT_OF_RANGE", ["graceSeconds"]),
        ({"graceSeconds": 3601}, "OUT_OF_RANGE", ["graceSeconds"]),
        ({"note": "x" * 501}, "TOO_LARGE", ["note"]),
    ],
)
def test_a_cancel_that_can_not_be(gateway: Gateway, arguments: dict[str, Any], code: str, field: list[str]) -> None:
    job = submit(gateway, key="kept for refusals")["job"]["id"]
    payload = cancel(gateway, job, **arguments)
    assert (payload["status"], payload["job"]["id"]) == ("REFUSED", job)
    assert [(error["code"], error["field"]) for error in payload["userErrors"]] == [(code, field)]


def test_a_job_that_is_not_there(gateway: Gateway) -> None:
    payload = cancel(gateway, "job-none")
    assert (payload["status"], payload["job"]) == ("REFUSED", None)
    assert [(error["code"], error["field"]) for error in payload["userErrors"]] == [("NOT_FOUND", ["id"])]


# --- prepareCode ------------------------------------------------------------------------------------------------------


def packed(into: Path, *files: tuple[str, str]) -> PackedCode:
    into.mkdir()
    return CapsulePacker(into).pack_files([InlineFile(path, content) for path, content in files], into)


def prepare(gateway: Gateway, code: PackedCode, **changed: Any) -> dict[str, Any]:
    about = {
        "digest": code.digest,
        "transportSha256": code.transport_sha256,
        "bytes": code.bytes,
        "files": len(code.files),
    }
    payload: dict[str, Any] = gateway.ask(PREPARE, input=about | changed)["prepareCode"]
    return payload


def send(upload: dict[str, Any], content: bytes) -> int:
    headers = {header["name"]: header["value"] for header in upload["headers"]}
    sent = httpx.request(upload["method"], upload["url"], content=content, headers=headers, timeout=PATIENCE_S)
    return sent.status_code


def test_code_is_announced_sent_used_and_then_known(gateway: Gateway, tmp_path: Path) -> None:
    code = packed(tmp_path / "code", ("train.py", "import model\n"), ("model/__init__.py", "LAYERS = 3\n"))
    asked = prepare(gateway, code)
    assert (asked["status"], asked["digest"], asked["userErrors"]) == ("UPLOAD_NEEDED", code.digest, [])
    assert send(asked["upload"], code.archive.read_bytes()) == 200
    job = submit(gateway, code={"digest": code.digest})["job"]["id"]
    assert gateway.finished(job)["outcome"] == "SUCCEEDED"
    assert gateway.ask(JOB, id=job)["job"]["capsule"]["codeDigest"] == code.digest
    known = prepare(gateway, code)
    assert (known["status"], known["digest"], known["upload"]) == ("PRESENT", code.digest, None)


def test_code_that_is_not_what_was_announced_ends_its_job(gateway: Gateway, tmp_path: Path) -> None:
    announced = packed(tmp_path / "announced", ("train.py", "print('good')\n"))
    other = packed(tmp_path / "other", ("train.py", "print('other')\n"))
    asked = prepare(gateway, announced, bytes=other.bytes)
    assert send(asked["upload"], other.archive.read_bytes()) == 200
    ended = gateway.finished(submit(gateway, code={"digest": announced.digest})["job"]["id"])
    assert (ended["outcome"], ended["reason"]["code"]) == ("FAILED", "CAPSULE_INVALID")
    assert other.digest in ended["reason"]["message"]
    assert prepare(gateway, announced)["status"] == "UPLOAD_NEEDED"


def test_code_of_another_size_than_announced_is_not_even_fetched(gateway: Gateway, tmp_path: Path) -> None:
    code = packed(tmp_path / "code", ("train.py", "print('size')\n"))
    asked = prepare(gateway, code)
    assert send(asked["upload"], code.archive.read_bytes() + b"more") == 200
    ended = gateway.finished(submit(gateway, code={"digest": code.digest})["job"]["id"])
    assert (ended["outcome"], ended["reason"]["code"]) == ("FAILED", "CAPSULE_INVALID")
    assert f"{code.bytes} bytes announced" in ended["reason"]["message"]


def test_code_that_was_announced_and_never_sent_ends_its_job(gateway: Gateway, tmp_path: Path) -> None:
    code = packed(tmp_path / "code", ("train.py", "print('never sent')\n"))
    prepare(gateway, code)
    ended = gateway.finished(submit(gateway, code={"digest": code.digest})["job"]["id"])
    assert (ended["outcome"], ended["reason"]["code"]) == ("FAILED", "CAPSULE_INVALID")


def test_a_link_lets_nobody_write_elsewhere(gateway: Gateway, tmp_path: Path) -> None:
    code = packed(tmp_path / "code", ("train.py", "print('link')\n"))
    upload = prepare(gateway, code)["upload"]
    sha256 = hashlib.sha256(b"other").hexdigest()
    elsewhere = upload | {"url": upload["url"].replace(code.transport_sha256, sha256)}
    assert send(elsewhere, b"other") == 403
    assert send(upload | {"method": "GET"}, b"") == 403
    assert send(upload | {"url": upload["url"].partition("?")[0]}, b"other") == 403


@pytest.mark.parametrize(
    ("changed", "field"),
    [({"digest": "x"}, "digest"), ({"transportSha256": "A" * 64}, "transportSha256")],
)
def test_digests_that_are_none(gateway: Gateway, tmp_path: Path, changed: dict[str, Any], field: str) -> None:
    code = packed(tmp_path / "code", ("train.py", ""))
    payload = prepare(gateway, code, **changed)
    assert (payload["status"], payload["digest"], payload["upload"]) == ("REFUSED", None, None)
    assert payload["userErrors"][0]["field"] == ["input", field]


def test_code_that_is_too_large(gateway: Gateway, tmp_path: Path) -> None:
    code = packed(tmp_path / "code", ("train.py", ""))
    assert prepare(gateway, code, bytes=2**40)["userErrors"][0]["code"] == "TOO_LARGE"
    assert prepare(gateway, code, files=20_001)["userErrors"][0]["code"] == "TOO_LARGE"


# --- who asks ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Basic dDo="])
def test_nobody_asks_without_the_token(gateway: Gateway, header: str | None) -> None:
    headers = {"authorization": header} if header else {}
    answer = httpx.post(gateway.url, json={"query": "{ feed { cursor } }"}, headers=headers, timeout=PATIENCE_S)
    assert answer.status_code == 401
    assert answer.json()["errors"][0]["extensions"]["code"] == "UNAUTHENTICATED"
