"""An issuer as the FORGE_OIDC_* settings describe it."""

import ssl
from pathlib import Path

import pytest

from starforge.adapters.settings import load_settings
from starforge.adapters.wiring import identities
from starforge.domain.rights import Role
from tests.contract.identities.issuer_server import AUDIENCE, IssuerServer

pytestmark = pytest.mark.anyio
LOCAL = {"FORGE_DEFAULT_FLEET_KIND": "local"}


def test_without_settings_there_is_no_issuer() -> None:
    assert identities(load_settings(LOCAL)) is None


async def test_the_least_that_is_needed(server: IssuerServer) -> None:
    env = LOCAL | {"FORGE_OIDC_ISSUER": server.url, "FORGE_OIDC_AUDIENCE": AUDIENCE}
    issuer = identities(load_settings(env))
    assert issuer is not None
    caller = await issuer.caller(server.sign())
    assert (caller.actor.name, caller.role, caller.projects) == ("ann", Role.SUBMITTER, {"vision"})


async def test_every_setting_counts(server: IssuerServer) -> None:
    server.pages["/elsewhere"] = server.pages["/keys"]
    env = LOCAL | {
        "FORGE_OIDC_ISSUER": server.url,
        "FORGE_OIDC_AUDIENCE": "forge",
        "FORGE_OIDC_JWKS_URL": f"{server.url}/elsewhere",
        "FORGE_OIDC_NAME_CLAIM": "email",
        "FORGE_OIDC_ROLE_CLAIM": "realm.groups",
        "FORGE_OIDC_ROLES": "/boss=ADMIN, cn=ml=SUBMITTER",
        "FORGE_OIDC_PROJECTS_CLAIM": "teams",
    }
    issuer = identities(load_settings(env))
    assert issuer is not None
    token = server.sign(aud="forge", email="ann@x", realm={"groups": ["cn=ml"]}, teams=["speech"], roles="ADMIN")
    caller = await issuer.caller(token)
    assert (caller.actor.name, caller.role, caller.projects) == ("ann@x", Role.SUBMITTER, {"speech"})
    assert server.asked == ["/elsewhere"]


def test_a_ca_file_that_holds_none_is_refused_at_the_start(server: IssuerServer, tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("nothing")
    env = {"FORGE_OIDC_ISSUER": server.url, "FORGE_OIDC_AUDIENCE": "a", "FORGE_OIDC_CA_FILE": str(tmp_path / "ca")}
    with pytest.raises(ssl.SSLError):
        identities(load_settings(LOCAL | env))
