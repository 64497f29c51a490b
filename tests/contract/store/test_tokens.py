"""Tokens in the database, and what is found for some projects alone."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest

from starforge.adapters.store import SqlStore
from starforge.domain.actions.create_token import create_token
from starforge.domain.changes import CapsuleRecord, Changes
from starforge.domain.errors import StaleRevision, UserMistake
from starforge.domain.names import Digest
from starforge.domain.rights import Role
from starforge.domain.tokens import Token, TokenDraft, TokenId
from tests.contract.store.counting import sent_by
from tests.contract.store.examples import AT, a_job, a_spec, after, save

HASH = "ab" * 32


def a_token(name: str = "ci", **rest: object) -> Token:
    token = Token(TokenId(f"id-{name}"), HASH, name, Role.SUBMITTER, ("speech", "vision"), "vision", AT)
    return replace(token, **rest)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "token",
    [
        a_token(),
        a_token(role=Role.ADMIN, projects=None, project=None),
        a_token(expires_at=after(60), revoked_at=after(30), last_used_at=after(10)),
        a_token(name="Ærø 🦋"),
    ],
)
def test_a_token_is_read_as_it_was_written(store: SqlStore, token: Token) -> None:
    store.add_token(token)
    assert store.tokens([token.id, TokenId("nobody's")]) == {token.id: token}


def test_a_name_is_had_by_one_token_that_is_valid(store: SqlStore) -> None:
    """Jobs remember who submitted them by name, and whoever has it is shown their idempotency keys."""
    numbers = itertools.count(1)

    def make(name: str, at: datetime, expires_at: datetime | None = None) -> Token:
        draft = TokenDraft(name, Role.ADMIN, expires_at=expires_at)
        return create_token(store, draft, at=at, random=lambda: f"{next(numbers):032}"[::-1])[0]

    first = make("ci", AT, after(60))
    with pytest.raises(UserMistake, match=f"The token {first.id} is named 'ci' already") as refused:
        make("ci", after(59))
    assert [(one.code, one.field) for one in refused.value.problems] == [("DUPLICATE", ("name",))]
    make("CI", AT)
    second = make("ci", after(60))
    store.revoke_token(second.id, at=after(61))
    third = make("ci", after(61))
    assert [one.id for one in store.all_tokens() if one.name == "ci"] == [first.id, second.id, third.id]


def test_an_id_is_given_once(store: SqlStore) -> None:
    store.add_token(a_token())
    with pytest.raises(StaleRevision, match="id-ci") as caught:
        store.add_token(a_token(role=Role.VIEWER))
    assert HASH not in str(caught.value)
    assert store.tokens([TokenId("id-ci")])[TokenId("id-ci")].role is Role.SUBMITTER


def test_tokens_are_listed_in_the_order_in_which_they_were_made(store: SqlStore) -> None:
    assert store.all_tokens() == []
    for name, seconds in (("c", 2), ("b", 1), ("a", 2)):
        store.add_token(a_token(name, created_at=after(seconds)))
    assert [token.name for token in store.all_tokens()] == ["b", "a", "c"]


def test_revoking_again_keeps_the_first_time(store: SqlStore) -> None:
    store.add_token(a_token())
    store.add_token(a_token("other"))
    first = store.revoke_token(TokenId("id-ci"), at=after(1))
    assert first == replace(a_token(), revoked_at=after(1))
    assert store.revoke_token(TokenId("id-ci"), at=after(9)) == first
    assert store.tokens([TokenId("id-other")])[TokenId("id-other")].revoked_at is None


def test_revoking_what_is_not_there(store: SqlStore) -> None:
    assert store.revoke_token(TokenId("nobody's"), at=AT) is None


def test_the_newest_use_stays(store: SqlStore) -> None:
    store.add_token(a_token())
    for seconds, seen in ((5, 5), (3, 5), (8, 8)):
        store.touch_token(TokenId("id-ci"), at=after(seconds))
        assert store.tokens([TokenId("id-ci")])[TokenId("id-ci")].last_used_at == after(seen)
    store.touch_token(TokenId("nobody's"), at=AT)
    assert len(store.all_tokens()) == 1


def test_many_tokens_are_one_statement(store: SqlStore) -> None:
    with sent_by(store) as sent:
        store.tokens([TokenId(f"id-{number}") for number in range(500)])
    assert len(sent) == 1


def test_two_processes_see_the_same_tokens(open_store: Callable[[], SqlStore]) -> None:
    here, there = open_store(), open_store()
    here.add_token(a_token())
    there.revoke_token(TokenId("id-ci"), at=after(1))
    assert here.tokens([TokenId("id-ci")])[TokenId("id-ci")].revoked_at == after(1)


def a_capsule(digest: str, code: str) -> CapsuleRecord:
    return CapsuleRecord(Digest(digest), Digest(code), 1, 2, "sha", Digest("runner"), AT)


def test_capsules_that_a_job_of_the_projects_uses(store: SqlStore) -> None:
    capsules = [a_capsule("one", "code"), a_capsule("two", "code"), a_capsule("unused", "code")]
    store.commit(Changes(capsules=capsules), at=AT)
    uses = (("vision", "one"), ("speech", "two"), ("speech", "one"), ("text", None))
    for number, (project, capsule) in enumerate(uses):
        job = a_job(number, a_spec(project=project))
        save(store, replace(job, code=Digest("code"), capsule=Digest(capsule) if capsule else None))
    every = [one.digest for one in capsules]
    found = {
        projects: set(store.capsules(every, projects=projects))
        for projects in (None, (), ("vision",), ("speech",), ("text",), ("text", "vision"))
    }
    assert found == {
        None: {"one", "two", "unused"}, (): set(), ("vision",): {"one"}, ("speech",): {"one", "two"},
        ("text",): set(), ("text", "vision"): {"one"},
    }  # fmt: skip


def test_capsules_of_projects_are_one_statement(store: SqlStore) -> None:
    with sent_by(store) as sent:
        store.capsules([Digest("one"), Digest("two")], projects=["vision", "speech"])
    assert len(sent) == 1


def test_projects_are_those_that_have_jobs(store: SqlStore) -> None:
    assert store.projects(limit=10) == []
    for number, project in enumerate(("vision", "speech", "vision", "text")):
        save(store, a_job(number, a_spec(project=project)))
    assert store.projects(limit=10) == ["speech", "text", "vision"]
    assert store.projects(limit=2) == ["speech", "text"]
