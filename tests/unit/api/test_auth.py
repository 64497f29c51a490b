"""Who may ask."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from starforge.api.auth import KEEP_S, Authority, expiry
from starforge.api.auth.authority import TOUCH_EVERY
from starforge.api.transport.callers import Credentials
from starforge.domain.errors import StoreUnavailable, Unauthenticated
from starforge.domain.job import Actor, ActorKind
from starforge.domain.rights import Caller, Role
from starforge.domain.tokens import ShownToken, Token, TokenDraft, TokenId, issue

pytestmark = pytest.mark.anyio
START = datetime(2026, 1, 1, tzinfo=UTC)
SHOWN = ShownToken(TokenId("0123456789abcdef"), "5ec4e7" + "0" * 58)
DRAFT = TokenDraft("ci", Role.SUBMITTER, ("vision",))
JWT = "head.claims.signature"
ANN = Caller(Actor("ann", ActorKind.USER), Role.VIEWER, None, frozenset({"a"}))


@dataclass
class Tokens:
    """Tokens in memory, which count how often they are asked for."""

    rows: dict[TokenId, Token] = field(default_factory=dict)
    asked: list[Sequence[TokenId]] = field(default_factory=list)
    touched: list[TokenId] = field(default_factory=list)
    down: bool = False
    read_only: bool = False

    def add(self, draft: TokenDraft = DRAFT, shown: ShownToken = SHOWN) -> Token:
        self.rows[shown.id] = issue(draft, shown, START)
        return self.rows[shown.id]

    def change(self, **values: Any) -> None:
        self.rows[SHOWN.id] = replace(self.rows[SHOWN.id], **values)

    def tokens(self, ids: Sequence[TokenId]) -> Mapping[TokenId, Token]:
        self.asked.append(ids)
        if self.down:
            raise StoreUnavailable("The database can't be asked.")
        return {one: self.rows[one] for one in ids if one in self.rows}

    def touch_token(self, token: TokenId, *, at: datetime) -> None:
        if self.read_only:
            raise StoreUnavailable("The database can't be asked.")
        self.touched.append(token)
        self.rows[token] = replace(self.rows[token], last_used_at=at)


@dataclass
class Issuer:
    asked: list[str] = field(default_factory=list)
    answer: Caller = ANN

    async def caller(self, token: str) -> Caller:
        self.asked.append(token)
        return self.answer


class World:
    """An authority over tokens in memory, at a time that is set by hand; `gate` holds the database up."""

    def __init__(self, **options: Any) -> None:
        self.tokens, self.passed = Tokens(), 0.0
        self.gate = asyncio.Event()
        self.gate.set()
        self.asking = asyncio.Event()
        self.authority = Authority(
            self.tokens,  # type: ignore[arg-type]  # only what is asked for
            self.ask,
            now=lambda: START + timedelta(seconds=self.passed),
            default_project="default",
            clock=lambda: self.passed,
            **options,
        )

    async def ask(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.asking.set()
        await self.gate.wait()
        return call(*args, **kwargs)

    async def enter(self, given: str | None = f"Bearer {SHOWN.text}", host: str | None = "10.0.0.1") -> Caller:
        return await self.authority.authenticate(Credentials(given, host))

    async def refused(self, given: str | None = f"Bearer {SHOWN.text}", host: str | None = "10.0.0.1") -> str:
        with pytest.raises(Unauthenticated) as caught:
            await self.enter(given, host)
        return str(caught.value)


@pytest.mark.parametrize("given", ["Bearer s3cret", "bearer s3cret", "Bearer  s3cret "])
async def test_the_bootstrap_token_lets_in(given: str) -> None:
    caller = await World(bootstrap="s3cret").enter(given)
    assert caller == Caller(Actor("bootstrap", ActorKind.TOKEN), Role.ADMIN, "default")


@pytest.mark.parametrize(
    "given", [None, "", "s3cret", "Basic s3cret", "Bearer", "Bearer S3cret", "Bearer \ud800", "Bearer é", "Bearer a b"]
)
@pytest.mark.parametrize("open_on_loopback", [False, True])
async def test_anything_else_does_not(given: str | None, *, open_on_loopback: bool) -> None:
    world = World(bootstrap="s3cret", open_on_loopback=open_on_loopback)
    assert "s3cret" not in await world.refused(given, "127.0.0.1")
    assert world.tokens.asked == []


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1"])
async def test_dev_lets_this_machine_in_without_a_token(host: str) -> None:
    caller = await World(open_on_loopback=True).enter(None, host)
    assert (caller.actor.name, caller.role, caller.project) == ("dev", Role.ADMIN, "default")


@pytest.mark.parametrize("host", [None, "10.0.0.1", "testclient", "::2"])
async def test_dev_lets_nobody_else_in(host: str | None) -> None:
    await World(open_on_loopback=True).refused(None, host)


async def test_on_dev_too_a_token_that_is_shown_has_to_be_good() -> None:
    world = World(open_on_loopback=True)
    assert "not known" in await world.refused(host="127.0.0.1")
    world.tokens.add()
    assert (await world.enter(host="127.0.0.1")).role is Role.SUBMITTER


async def test_without_a_token_it_is_said_how_to_send_one() -> None:
    assert "Authorization: Bearer <token>" in await World().refused(None)


async def test_a_token_of_the_database_lets_in() -> None:
    world = World()
    world.tokens.add(replace(DRAFT, projects=("vision", "speech"), project="speech"))
    assert await world.enter() == Caller(
        Actor("ci", ActorKind.TOKEN), Role.SUBMITTER, "speech", frozenset({"vision", "speech"}), SHOWN.id
    )


async def test_jobs_of_an_admin_go_to_the_default_project() -> None:
    world = World()
    world.tokens.add(TokenDraft("ops", Role.ADMIN))
    caller = await world.enter()
    assert (caller.project, caller.projects) == ("default", None)


@pytest.mark.parametrize(
    "text",
    [
        ShownToken(SHOWN.id, "0" * 64).text,
        ShownToken(TokenId("f" * 16), SHOWN.secret).text,
        SHOWN.text[:-1],
        SHOWN.text.upper(),
        "sf_",
        "x" * 20_000,
        JWT,
    ],
)
async def test_what_is_not_quite_a_token_is_refused_and_not_repeated(text: str) -> None:
    world = World()
    world.tokens.add()
    said = await world.refused(f"Bearer {text}")
    assert text not in said
    assert SHOWN.secret not in said


@pytest.mark.parametrize(
    ("change", "words"),
    [({"revoked_at": START}, "was revoked"), ({"expires_at": START}, "has expired"), ({"expires_at": None}, None)],
)
async def test_a_token_that_is_over_says_so(change: dict[str, Any], words: str | None) -> None:
    world = World()
    world.tokens.add()
    world.tokens.change(**change)
    if words is None:
        await world.enter()
    else:
        said = await world.refused()
        assert words in said
        assert SHOWN.id in said
        assert SHOWN.secret not in said


async def test_a_token_is_asked_for_once_in_a_while() -> None:
    world = World()
    world.tokens.add()
    for _ in range(100):
        await world.enter()
    assert len(world.tokens.asked) == 1
    world.passed = KEEP_S
    await world.enter()
    assert len(world.tokens.asked) == 2


async def test_many_who_come_at_once_ask_once() -> None:
    world = World()
    world.tokens.add()
    world.gate.clear()
    entering = [asyncio.create_task(world.enter()) for _ in range(100)]
    await world.asking.wait()
    entering[0].cancel()
    world.gate.set()
    done = await asyncio.gather(*entering, return_exceptions=True)
    assert isinstance(done[0], asyncio.CancelledError)
    assert {one.actor.name for one in done[1:] if isinstance(one, Caller)} == {"ci"}
    assert len(world.tokens.asked) == 1


async def test_a_revoked_token_is_refused_within_the_time_that_is_told() -> None:
    world = World()
    world.tokens.add()
    await world.enter()
    world.tokens.change(revoked_at=START)
    world.passed = KEEP_S - 0.01
    await world.enter()
    world.passed = KEEP_S
    assert "revoked" in await world.refused()


async def test_a_slow_answer_does_not_make_a_token_live_longer() -> None:
    world = World()
    world.tokens.add()
    world.gate.clear()
    entering = asyncio.create_task(world.enter())
    await world.asking.wait()
    world.passed = KEEP_S  # it may have been read at any time since it was asked for
    world.gate.set()
    await entering
    world.tokens.change(revoked_at=START)
    assert "revoked" in await world.refused()


async def test_a_token_expires_while_it_is_remembered() -> None:
    world = World()
    world.tokens.add(replace(DRAFT, expires_at=START + timedelta(seconds=2)))
    assert expiry(await world.enter()) == START.timestamp() + 2
    world.passed = 2
    assert "has expired" in await world.refused()


async def test_refusals_are_not_remembered() -> None:
    world = World()
    await world.refused()
    world.tokens.add()
    await world.enter()


async def test_a_database_that_is_down_makes_nobody_a_stranger() -> None:
    world = World()
    world.tokens.add()
    world.tokens.down = True
    with pytest.raises(StoreUnavailable):
        await world.enter()
    world.tokens.down = False
    await world.enter()


async def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("starforge.api.auth.authority.KEEP_MOST", 3)
    world = World()
    shown = [ShownToken(TokenId(f"{number:016x}"), "a" * 64) for number in range(5)]
    for one in shown:
        world.tokens.add(shown=one)
        await world.enter(f"Bearer {one.text}")
    assert len(world.authority._known) == 3
    await world.enter(f"Bearer {shown[-1].text}")
    assert len(world.tokens.asked) == 5
    await world.enter(f"Bearer {shown[0].text}")
    assert len(world.tokens.asked) == 6


async def test_use_is_noted_once_a_minute() -> None:
    world = World()
    world.tokens.add()
    for seconds in (0, 20, 40, TOUCH_EVERY.total_seconds() + 1):
        world.passed = seconds
        await world.enter()
        await world.authority.close()
    assert world.tokens.touched == [SHOWN.id, SHOWN.id]


async def test_uses_are_noted_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    shown = [ShownToken(TokenId(f"{number:016x}"), "a" * 64) for number in range(5)]
    writing, most = 0, 0

    async def ask(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        nonlocal writing, most
        is_write = call == world.tokens.touch_token
        writing += is_write
        most = max(most, writing)
        await asyncio.sleep(0)
        writing -= is_write
        return call(*args, **kwargs)

    monkeypatch.setattr(world.authority, "_ask", ask)
    for one in shown:
        world.tokens.add(shown=one)
    await asyncio.gather(*(world.enter(f"Bearer {one.text}") for one in shown))
    await world.authority.close()
    assert sorted(world.tokens.touched) == [one.id for one in shown]
    assert most == 1


async def test_use_that_cannot_be_noted_is_logged_without_the_token(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.tokens.add()
    with caplog.at_level(logging.DEBUG):
        world.tokens.read_only = True
        await world.enter()
        await world.authority.close()
    assert f"token {SHOWN.id} was used: The database can't be asked" in caplog.text
    assert SHOWN.secret not in caplog.text


async def test_a_jwt_is_the_issuer_s_business() -> None:
    issuer = Issuer()
    world = World(identities=issuer)
    assert await world.enter(f"Bearer {JWT}") == ANN
    await world.enter(f"Bearer {JWT}")
    assert issuer.asked == [JWT]
    assert world.tokens.asked == []
    issuer.answer = replace(ANN, role=Role.ADMIN, projects=None)
    assert (await world.enter("Bearer other.jwt.here")).project == "default"
    assert "not known" in await world.refused("Bearer what.is.this.then")


async def test_those_who_are_still_valid_are_found_by_one_question() -> None:
    world = World(identities=Issuer())
    shown = [ShownToken(TokenId(f"{number:016x}"), "a" * 64) for number in range(4)]
    good, revoked, expiring, gone = [world.tokens.add(shown=one).caller for one in shown]
    expiring = replace(expiring, expires_at=START + timedelta(seconds=9))
    world.tokens.rows[shown[1].id] = replace(world.tokens.rows[shown[1].id], revoked_at=START)
    del world.tokens.rows[shown[3].id]
    old = replace(ANN, expires_at=START)
    everybody = {good, revoked, expiring, gone, ANN, old}
    assert await world.authority.still_valid(everybody) == {good, expiring, ANN}
    world.passed = 9
    assert await world.authority.still_valid(everybody) == {good, ANN}
    assert [sorted(ids) for ids in world.tokens.asked] == [[one.id for one in shown]] * 2


async def test_who_has_no_token_needs_no_database() -> None:
    world = World(bootstrap="s3cret")
    world.tokens.down = True
    admin = await world.enter("Bearer s3cret")
    assert await world.authority.still_valid([admin]) == {admin}
    assert await world.authority.still_valid([]) == set()


async def test_no_secret_is_shown_by_accident() -> None:
    world = World(bootstrap="s3cret")
    token = world.tokens.add()
    caller = await world.enter()
    shown = [repr(one) for one in (SHOWN, token, caller, Credentials(f"Bearer {SHOWN.text}", None), world.authority)]
    assert not any(SHOWN.secret in text or token.secret_sha256 in text or "s3cret" in text for text in shown)
    assert SHOWN.secret not in repr(vars(world.authority._known))
