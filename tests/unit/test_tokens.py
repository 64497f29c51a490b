"""Tokens: their form, what they may be, and that their secret stays one."""

import hashlib
import itertools
import pickle
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from starforge.domain.errors import UserMistake
from starforge.domain.redaction import redact, redact_bytes
from starforge.domain.rights import PROJECTS_MAX, Role
from starforge.domain.tokens import ShownToken, TokenDraft, TokenId, issue

AT = datetime(2026, 1, 1, tzinfo=UTC)
SHOWN = ShownToken(TokenId("0123456789abcdef"), "ab" * 32)
DRAFT = TokenDraft("ci", Role.VIEWER, ("vision",))
hexadecimal = st.text("0123456789abcdef", min_size=32, max_size=32)


@given(st.lists(hexadecimal, min_size=3, max_size=3))
def test_a_new_token_is_read_as_itself(random: list[str]) -> None:
    shown = ShownToken.new(iter(random))
    assert ShownToken.read(shown.text) == shown
    assert (shown.id, shown.secret) == (random[0][:16], random[1] + random[2])


@given(st.text(max_size=100))
def test_other_texts_are_no_tokens(text: str) -> None:
    assert ShownToken.read(text) is None
    assert ShownToken.read(f"{SHOWN.text}{text}") == (None if text else SHOWN)


def test_the_hash_is_all_that_is_kept() -> None:
    token = issue(DRAFT, SHOWN, AT)
    assert token.secret_sha256 == hashlib.sha256(SHOWN.secret.encode()).hexdigest()
    assert SHOWN.secret.encode() not in pickle.dumps(token)
    assert token.opened_by(SHOWN)
    assert not token.opened_by(replace(SHOWN, secret="cd" * 32))


def test_neither_secret_nor_hash_is_in_what_is_printed() -> None:
    token = issue(DRAFT, SHOWN, AT)
    printed = f"{SHOWN} {SHOWN!r} {token} {token!r} {token.caller!r}"
    assert SHOWN.secret not in printed
    assert token.secret_sha256 not in printed


def test_a_token_in_text_from_outside_is_removed() -> None:
    text = f"FORGE_TOKEN={SHOWN.text}; curl -H 'Authorization: Bearer {SHOWN.text}'"
    for redacted in (redact(text), redact_bytes(text.encode()).decode()):
        assert SHOWN.secret not in redacted
        assert redacted.count(f"sf_{SHOWN.id}_<removed>") == 2


def test_when_it_is_over() -> None:
    token = issue(replace(DRAFT, expires_at=AT + timedelta(seconds=1)), SHOWN, AT)
    assert token.over(AT) is None
    assert token.over(AT + timedelta(seconds=1)) == "has expired"
    assert replace(token, revoked_at=AT).over(AT + timedelta(days=1)) == "was revoked"


def test_where_its_jobs_go() -> None:
    several = replace(DRAFT, projects=("vision", "speech", "vision"))
    drafts = (DRAFT, several, replace(several, project="speech"), TokenDraft("ops", Role.ADMIN, project="any"))
    assert [issue(draft, SHOWN, AT).project for draft in drafts] == ["vision", None, "speech", "any"]
    assert issue(several, SHOWN, AT).projects == ("speech", "vision")


@pytest.mark.parametrize(
    ("draft", "codes"),
    [
        (replace(DRAFT, name=""), ["INVALID"]),
        (replace(DRAFT, name="x" * 101), ["INVALID"]),
        (replace(DRAFT, name="a\nb"), ["INVALID"]),
        (replace(DRAFT, projects=None), ["REQUIRED"]),
        (replace(DRAFT, projects=()), ["REQUIRED"]),
        (replace(DRAFT, role=Role.ADMIN), ["EXCLUSIVE"]),
        (replace(DRAFT, projects=("Vision",)), ["INVALID"]),
        (replace(DRAFT, project="speech"), ["INVALID"]),
        (replace(DRAFT, expires_at=AT), ["OUT_OF_RANGE"]),
        (replace(DRAFT, name="", projects=None, expires_at=AT), ["INVALID", "OUT_OF_RANGE", "REQUIRED"]),
        (replace(DRAFT, projects=tuple(f"p{n}" for n in range(PROJECTS_MAX + 1))), ["TOO_LARGE"]),
    ],
)
def test_what_a_token_can_t_be(draft: TokenDraft, codes: list[str]) -> None:
    with pytest.raises(UserMistake) as caught:
        issue(draft, SHOWN, AT)
    assert [problem.code for problem in caught.value.problems] == codes


def test_ids_of_many_tokens_differ() -> None:
    random = (hashlib.sha256(str(number).encode()).hexdigest()[:32] for number in itertools.count())
    assert len({ShownToken.new(random).id for _ in range(100)}) == 100
