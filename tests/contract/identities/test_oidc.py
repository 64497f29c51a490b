"""JWTs of an issuer: which are taken, as whom, and which are refused."""

import base64
import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from joserfc.jwk import ECKey, OctKey, RSAKey

from starforge.adapters.oidc import Issuer, OidcConfig
from starforge.adapters.oidc.issuer import LEEWAY_S
from starforge.domain.errors import Forbidden, IssuerUnavailable, Unauthenticated
from starforge.domain.job import Actor, ActorKind
from starforge.domain.rights import Caller, Role
from tests.contract.identities.issuer_server import AUDIENCE, DISCOVERY, IssuerServer, a_key

pytestmark = pytest.mark.anyio
NOW = datetime.now(UTC)


def config_of(server: IssuerServer, **options: Any) -> OidcConfig:
    config = OidcConfig(server.url, AUDIENCE, {role.value: role for role in Role})
    return replace(config, **options)


def issuer_of(server: IssuerServer, **options: Any) -> Issuer:
    return Issuer(config_of(server, **options), now=lambda: datetime.now(UTC))


async def refused(issuer: Issuer, token: str, kind: type[Exception] = Unauthenticated) -> str:
    """The sentence of a refusal, which never repeats the token."""
    with pytest.raises(kind) as caught:
        await issuer.caller(token)
    assert token not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
@pytest.mark.parametrize("kid", [{}, {"kid": None}])
async def test_a_genuine_token_says_who_it_is(server: IssuerServer, algorithm: str, kid: dict[str, Any]) -> None:
    server.publish(a_key(algorithm, "one"), a_key("ES256" if algorithm == "RS256" else "RS256", "other"))
    expires = int(time.time()) + 100
    caller = await issuer_of(server).caller(server.sign(header=kid, exp=expires))
    assert caller == Caller(
        Actor("ann", ActorKind.USER), Role.SUBMITTER, "vision", frozenset({"vision"}), None,
        datetime.fromtimestamp(expires + LEEWAY_S, UTC),
    )  # fmt: skip
    assert server.asked == [DISCOVERY, "/keys"]


async def test_with_the_address_of_the_keys_there_is_no_discovery(server: IssuerServer) -> None:
    issuer = issuer_of(server, jwks_url=f"{server.url}/keys")
    for _ in range(3):
        await issuer.caller(server.sign())
    assert server.asked == ["/keys"]


@pytest.mark.parametrize("audience", [AUDIENCE, [AUDIENCE], ["other", AUDIENCE]])
async def test_one_of_the_audiences_is_enough(server: IssuerServer, audience: object) -> None:
    assert (await issuer_of(server).caller(server.sign(aud=audience))).actor.name == "ann"


Claims = dict[str, Any]
SOON = time.time() + 600
REFUSED: dict[str, tuple[Claims, str]] = {
    "another issuer": ({"iss": "http://elsewhere"}, "iss"),
    "no issuer": ({"iss": None}, "iss"),
    "another audience": ({"aud": "grafana"}, "aud"),
    "other audiences": ({"aud": ["grafana", "x"]}, "aud"),
    "no audience": ({"aud": None}, "aud"),
    "an audience that is none": ({"aud": {"a": AUDIENCE}}, "aud"),
    "no expiry": ({"exp": None}, "exp"),
    "an expiry that is none": ({"exp": "tomorrow"}, "exp"),
    "an expiry that is infinite": ({"exp": float("inf")}, "exp"),
    "expired": ({"exp": int(time.time()) - LEEWAY_S - 1}, "has expired"),
    "not valid yet": ({"nbf": SOON}, "nbf"),
    "issued in the future": ({"iat": SOON}, "iat"),
    "no name": ({"sub": None}, "name"),
    "an empty name": ({"sub": "  "}, "name"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_claims_that_are_wrong(server: IssuerServer, name: str) -> None:
    claims, words = REFUSED[name]
    assert words in await refused(issuer_of(server), server.sign(**claims))


async def test_clocks_may_be_off_a_little(server: IssuerServer) -> None:
    now = time.time()
    caller = await issuer_of(server).caller(server.sign(exp=now - 5, nbf=now + 5, iat=now + 5))
    assert caller.expires_at is not None
    assert caller.expires_at > datetime.now(UTC)


async def test_an_expiry_after_all_calendars_is_some_day(server: IssuerServer) -> None:
    caller = await issuer_of(server).caller(server.sign(exp=10**300))
    assert caller.expires_at is not None
    assert caller.expires_at.year > 8000


def part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def unsigned(server: IssuerServer) -> str:
    return f"{part({'alg': 'none'})}.{server.sign().split('.')[1]}."


def by_public_key(server: IssuerServer) -> str:
    """The old attack: the public key as the secret of an HMAC."""
    assert isinstance(server.signing, RSAKey)
    return server.sign(OctKey.import_key(server.signing.public_key.public_numbers().n.to_bytes(256)))


def forged(server: IssuerServer) -> str:
    return server.sign(a_key("RS256", "one"))


def changed(server: IssuerServer) -> str:
    head, _, signature = server.sign().split(".")
    return f"{head}.{server.sign(roles=['ADMIN']).split('.')[1]}.{signature}"


def with_own_key(server: IssuerServer) -> str:
    key = a_key("RS256", "mine")
    return server.sign(key, header={"jwk": key.as_dict(private=False), "jku": f"{server.url}/keys", "kid": "mine"})


def of_other_kind(server: IssuerServer) -> str:
    return server.sign(a_key("ES256", "one"))


ATTACKS: dict[str, Callable[[IssuerServer], str]] = {
    "unsigned": unsigned,
    "none in other letters": lambda server: unsigned(server).replace(part({"alg": "none"}), part({"alg": "NONE"})),
    "HMAC": lambda server: server.sign(OctKey.generate_key(256, {"kid": "one"})),
    "HMAC by the public key": by_public_key,
    "a weaker method": lambda server: server.sign(header={"alg": "RS512"}),
    "a method that is none": lambda server: f"{part({'alg': ['RS256']})}.{part({})}.x",
    "forged": forged,
    "changed": changed,
    "its own key": with_own_key,
    "an unknown kid": lambda server: server.sign(header={"kid": "nobody's"}),
    "a kid that is none": lambda server: f"{part({'alg': 'RS256', 'kid': ['one']})}.{part({})}.x",
    "a key of another kind": of_other_kind,
    "something critical": lambda server: server.sign(header={"crit": ["b64"], "b64": True}),
    "nothing": lambda _: "..",
    "no JSON": lambda _: "x.y.z",
    "no object": lambda _: f"{part([1])}.{part([1])}.x",
    "claims that are none": lambda _: f"{part({'alg': 'RS256'})}.{part([1])}.x",
    "deep": lambda _: f"{base64.urlsafe_b64encode(b'[' * 9000).decode()}.x.y",
    "no letters": lambda server: server.sign().replace(".", ".\x00", 1),
    "cut": lambda server: server.sign()[:-10],
}


@pytest.mark.parametrize("name", ATTACKS)
async def test_attacks(server: IssuerServer, name: str) -> None:
    issuer = issuer_of(server)
    await refused(issuer, ATTACKS[name](server))
    await issuer.caller(server.sign())


@pytest.mark.parametrize(
    ("claims", "options", "role"),
    [
        ({"roles": "VIEWER"}, {}, Role.VIEWER),
        ({"roles": ["VIEWER", "ADMIN", "SUBMITTER"]}, {}, Role.ADMIN),
        ({"roles": ["x", 5, "VIEWER"]}, {}, Role.VIEWER),
        ({"groups": ["/ml"]}, {"role_claim": "groups", "roles": {"/ml": Role.SUBMITTER}}, Role.SUBMITTER),
        ({"realm": {"roles": ["ADMIN"]}}, {"role_claim": "realm.roles"}, Role.ADMIN),
        ({"https://forge/roles": ["ADMIN"]}, {"role_claim": "https://forge/roles"}, Role.ADMIN),
        ({"roles": ["root"]}, {}, None),
        ({"roles": ["ADMIN"]}, {"roles": {"boss": Role.ADMIN}}, None),
        ({"roles": None}, {}, None),
        ({"roles": {"ADMIN": True}}, {}, None),
    ],
)
async def test_roles(server: IssuerServer, claims: Claims, options: dict[str, Any], role: Role | None) -> None:
    issuer, token = issuer_of(server, **options), server.sign(**claims)
    if role is None:
        assert options.get("role_claim", "roles") in await refused(issuer, token, Forbidden)
    else:
        caller = await issuer.caller(token)
        assert caller.role is role
        assert (caller.projects is None) is (role is Role.ADMIN)


@pytest.mark.parametrize(
    ("claims", "projects"),
    [
        ({"projects": "vision"}, {"vision"}),
        ({"projects": ["vision", "speech", "vision"]}, {"vision", "speech"}),
        ({"projects": ["/not/one", 7, "speech"]}, {"speech"}),
        ({"projects": []}, None),
        ({"projects": None}, None),
        ({"projects": "Not One"}, None),
    ],
)
async def test_projects(server: IssuerServer, claims: Claims, projects: set[str] | None) -> None:
    issuer, token = issuer_of(server), server.sign(**claims)
    if projects is None:
        assert "'projects'" in await refused(issuer, token, Forbidden)
    else:
        caller = await issuer.caller(token)
        assert caller.projects == projects
        assert caller.project == (next(iter(projects)) if len(projects) == 1 else None)


async def test_the_name_to_show_can_be_another_claim(server: IssuerServer) -> None:
    issuer = issuer_of(server, name_claim="email")
    assert (await issuer.caller(server.sign(email="ann@x\x1b[1m" + "y" * 300))).actor.name == ("ann@x?[1m" + "y" * 91)
    assert "'email'" in await refused(issuer, server.sign())


@pytest.mark.parametrize(
    "key",
    [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "one"},
        {"kty": "RSA", "kid": "one", "n": "AQAB"},
        {"kty": "RSA", "kid": "one", "n": "AQAB", "e": 3},
        {"kid": "one"},
        a_key("RS256", "one").as_dict(private=False) | {"use": "enc"},
        ECKey.generate_key("P-384", {"kid": "one"}).as_dict(private=False),
        a_key("RS256", "one").as_dict(private=False) | {"n": "_" * 171},  # 1,024 bits
    ],
)
async def test_keys_that_are_no_good_do_not_spoil_the_others(server: IssuerServer, key: dict[str, Any]) -> None:
    signer = a_key("ES256", "two")
    server.publish(key, signer)
    issuer = issuer_of(server)
    assert (await issuer.caller(server.sign(signer))).actor.name == "ann"
    await refused(issuer, server.sign(a_key("RS256", "one")))


async def test_an_issuer_with_no_good_key_is_told_as_such(server: IssuerServer) -> None:
    signer = a_key("RS256", "one")
    server.publish({"kty": "oct", "k": "c2VjcmV0"})
    with pytest.raises(IssuerUnavailable, match="no key that can be used"):
        await issuer_of(server).caller(server.sign(signer))
