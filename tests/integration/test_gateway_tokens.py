"""Tokens at a real gateway: who gets in, who does not and why, and that no token is ever told to anybody else."""

import logging
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest

from starforge.adapters.store import SqlStore
from starforge.api.transport import connections
from starforge.domain.actions.create_token import create_token
from starforge.domain.actions.revoke_token import revoke_token
from starforge.domain.errors import StoreUnavailable
from starforge.domain.rights import Role
from starforge.domain.tokens import ShownToken, TokenDraft
from tests.integration.gateway import PATIENCE_S, ConnectionClosed, Gateway, a_submission, platform

VIEWER = """
{ viewer {
  name kind role project projects permissions expiresAt
  limits { pageSize logPageSize batchSize inlineCodeBytes codeBytes codeFiles requestBytes documentCost documentDepth
           subscriptionsPerConnection connections snapshotJobs idempotencySeconds }
} }
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    cache = tmp_path_factory.getbasetemp() / "runner"
    with platform(tmp_path_factory.mktemp("platform"), cache) as there, there.gateway() as running:
        yield running


def made(
    gateway: Gateway, *projects: str, role: Role = Role.SUBMITTER, lives_s: float | None = None, name: str | None = None
) -> ShownToken:
    """A token, of a name that no other has unless one is given."""
    at = gateway.parts.ports.now()
    expires = at + timedelta(seconds=lives_s) if lives_s else None
    draft = TokenDraft(name or f"ci {secrets.token_hex(4)}", role, projects or None, expires_at=expires)
    return create_token(gateway.parts.ports.store, draft, at=at, random=lambda: secrets.token_hex(16))[1]


def revoke(gateway: Gateway, token: ShownToken) -> None:
    revoke_token(gateway.parts.ports.store, token.id, at=gateway.parts.ports.now())


def post(gateway: Gateway, authorization: str | None) -> httpx.Response:
    headers = {"authorization": authorization} if authorization else {}
    headers["accept"] = "application/graphql-response+json"
    return httpx.post(gateway.url, json={"query": VIEWER}, headers=headers, timeout=PATIENCE_S)


def refusal(answer: httpx.Response) -> tuple[int, str, str]:
    error = answer.json()["errors"][0]
    return answer.status_code, error["extensions"]["code"], error["message"]


def test_the_viewer_of_a_token(gateway: Gateway) -> None:
    token = made(gateway, "vision", "speech", lives_s=3600, name="ci")
    viewer = replace(gateway, token=token.text).ask(VIEWER)["viewer"]
    assert viewer.pop("expiresAt") is not None
    limits = viewer.pop("limits")
    assert viewer == {
        "name": "ci", "kind": "TOKEN", "role": "SUBMITTER", "project": None, "projects": ["speech", "vision"],
        "permissions": ["READ", "READ_LOGS", "READ_CODE", "SUBMIT_JOBS", "CANCEL_JOBS", "MANAGE_PLAYGROUNDS"],
    }  # fmt: skip
    assert limits["pageSize"] == 100
    assert limits["idempotencySeconds"] == 86400
    assert limits["requestBytes"] == gateway.services.limits.body_bytes
    assert all(limit > 0 for limit in limits.values())


def test_the_viewer_of_the_bootstrap_token(gateway: Gateway) -> None:
    gateway.submit(project="text")
    viewer = gateway.ask(VIEWER)["viewer"]
    assert (viewer["name"], viewer["role"], viewer["project"]) == ("bootstrap", "ADMIN", "default")
    assert {"default", "text"} <= set(viewer["projects"])
    assert viewer["projects"] == sorted(viewer["projects"])


def test_refusals_say_what_to_do(gateway: Gateway) -> None:
    revoked = made(gateway, "vision", name="old")
    expired = made(gateway, "vision", lives_s=0.001, name="brief")
    revoke(gateway, revoked)
    wrong = replace(revoked, secret="0" * 64)
    expected = {
        None: "There is no token. Send the header",
        "Basic YTpi": "What was sent is not a token.",
        "Bearer nonsense": "The token is not known here.",
        f"Bearer {wrong.text}": "The token is not known here.",
        f"Bearer {revoked.text}": f"The token old ({revoked.id}) was revoked.",
        f"Bearer {expired.text}": f"The token brief ({expired.id}) has expired.",
    }
    for given, words in expected.items():
        answer = post(gateway, given)
        status, code, message = refusal(answer)
        assert (status, code) == (401, "UNAUTHENTICATED")
        assert message.startswith(words)
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert given is None or given.partition(" ")[2] not in answer.text


def test_a_database_that_is_down_is_no_wrong_token(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    def down(_self: SqlStore, _ids: Sequence[Any]) -> Any:
        raise StoreUnavailable("The database can't be asked: it is down.")

    token = made(gateway, "vision")
    with monkeypatch.context() as outage:
        outage.setattr(SqlStore, "tokens", down)
        status, code, message = refusal(post(gateway, f"Bearer {token.text}"))
        assert (status, code) == (503, "UNAVAILABLE")
        assert "database" in message
    assert post(gateway, f"Bearer {token.text}").status_code == 200


def test_a_revoked_token_ends_its_sockets_and_no_others(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "VALIDITY_S", 0.0)
    ended, kept = (replace(gateway, token=made(gateway, "vision").text) for _ in range(2))
    token = ShownToken.read(ended.token)
    assert token is not None
    jobs = "subscription { jobs { kind job { id } } }"
    with ended.live(jobs) as first, kept.live(jobs) as second:
        for live in (first, second):
            live.until(lambda step: step["kind"] == "BOOKMARK")
        revoke(gateway, token)
        with pytest.raises(ConnectionClosed) as caught:
            first.until(lambda _: False)
        assert caught.value.rcvd is not None
        assert caught.value.rcvd.code == 4403
        job = kept.submit(project="vision")
        second.until(lambda step: step["job"] and step["job"]["id"] == job)


def test_a_token_is_told_to_nobody(gateway: Gateway, caplog: pytest.LogCaptureFixture) -> None:
    token = made(gateway, "vision", name="told")
    mine = replace(gateway, token=token.text)
    with caplog.at_level(logging.DEBUG):
        job = mine.submit(name=f"run-{token.id}", code=None)
        mine.answer("query($input: Int!) { nonsense(input: $input) }", input=token.text)
        mine.answer("{ jobs(first: 1000) { nodes { id } } }")
        mine.answer("mutation($input: SubmitJobInput!) { submitJob(input: $input) { status } }",
                    input=a_submission(project="speech"))  # fmt: skip
        with mine.live("subscription($id: ID!) { job(id: $id) { job { state } } }", id=job) as live:
            next(iter(live))
    document = "{ events(first: 100) { nodes { message ... on ActionEvent { actor { name } } } } viewer { name } }"
    told = repr(gateway.answer(document)) + caplog.text
    assert "'actor': {'name': 'told'}" in told
    assert token.secret not in told
