"""Who may ask."""

import pytest

from starforge.api.auth import authenticator
from starforge.api.transport.callers import Credentials
from starforge.domain.errors import Unauthenticated

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("given", ["Bearer s3cret", "bearer s3cret", "Bearer  s3cret "])
async def test_the_token_lets_in(given: str) -> None:
    caller = await authenticator("s3cret", open_on_loopback=False)(Credentials(given, "10.0.0.1"))
    assert caller.actor.name == "bootstrap"


@pytest.mark.parametrize(
    "given", [None, "", "s3cret", "Basic s3cret", "Bearer", "Bearer S3cret", "Bearer \ud800", "Bearer é"]
)
@pytest.mark.parametrize("open_on_loopback", [False, True])
async def test_anything_else_does_not(given: str | None, *, open_on_loopback: bool) -> None:
    with pytest.raises(Unauthenticated):
        await authenticator("s3cret", open_on_loopback=open_on_loopback)(Credentials(given, "127.0.0.1"))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1"])
async def test_dev_lets_this_machine_in_without_a_token(host: str) -> None:
    caller = await authenticator(None, open_on_loopback=True)(Credentials(None, host))
    assert caller.actor.name == "dev"


@pytest.mark.parametrize("host", [None, "10.0.0.1", "testclient", "::2"])
async def test_dev_lets_nobody_else_in(host: str | None) -> None:
    with pytest.raises(Unauthenticated):
        await authenticator(None, open_on_loopback=True)(Credentials(None, host))


async def test_without_a_token_nobody_is_let_in() -> None:
    with pytest.raises(Unauthenticated):
        await authenticator(None, open_on_loopback=False)(Credentials("Bearer ", "127.0.0.1"))
