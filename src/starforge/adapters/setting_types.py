"""How the text of a setting becomes a value; each raises ValueError with what is wrong, to follow on `FORGE_X …`."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, SecretStr

from starforge.domain.ports import FleetKind
from starforge.domain.quantities import parse_bytes
from starforge.domain.queue import Queueing
from starforge.domain.rights import Role

_SWITCH = {"0": False, "1": True, "false": False, "true": True}
_SERIES = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_DNS_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_LABEL_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")


def parse_switch(text: object) -> object:
    """0, 1, true or false as a bool; a bool stays one."""
    if isinstance(text, bool):
        return text
    if str(text).lower() not in _SWITCH:
        raise ValueError("must be 0, 1, true or false")
    return _SWITCH[str(text).lower()]


def parse_fleet_kind(text: object) -> object:
    if isinstance(text, str) and text in {kind.lower() for kind in FleetKind}:
        return FleetKind(text.upper())
    if isinstance(text, FleetKind):
        return text
    raise ValueError("must be kuberay, local or simulated")


def parse_queueing(text: object) -> object:
    if isinstance(text, str) and text in {one.lower() for one in Queueing}:
        return Queueing(text.upper())
    if isinstance(text, Queueing):
        return text
    raise ValueError("must be auto, on or off")


def parse_gpus(text: object) -> object:
    """`h200:8,b200:4` as {"h200": 8, "b200": 4}; a mapping stays one."""
    if not isinstance(text, str):
        return text
    found: dict[str, int] = {}
    for part in text.split(","):
        series, _, count = (word.strip() for word in part.partition(":"))
        if not _SERIES.fullmatch(series) or not re.fullmatch(r"[0-9]{1,6}", count) or series in found:
            raise ValueError("must be a list of series:count, each series once")
        found[series] = int(count)
    return found


def parse_roles(text: object) -> object:
    """`ml-admins=ADMIN,ml=SUBMITTER` as a mapping to roles; a mapping stays one."""
    if not isinstance(text, str):
        return text
    found: dict[str, Role] = {}
    for part in text.split(","):
        value, _, role = (word.strip() for word in part.rpartition("="))
        if not value or role not in set(Role) or value in found:
            raise ValueError("must be a list of value=ROLE, each value once, with VIEWER, SUBMITTER or ADMIN")
        found[value] = Role(role)
    return found


def _issuer(text: str) -> str:
    _http_url(text)
    return text  # with its last slash, as it is compared with what a token says


def _matching(pattern: re.Pattern[str], what: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise ValueError(f"must be {what}")
        return text

    return check


def _quantity(text: str) -> str:
    try:
        parse_bytes(text)
    except ValueError:
        raise ValueError("must be a quantity: a number with Ki, Mi, Gi, Ti or no unit") from None
    return text


def _http_url(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be an http or https address without a query")
    if parts.username or parts.password:
        raise ValueError("must hold no user or password")
    return text.rstrip("/")


def _secret_url(*schemes: str) -> Callable[[SecretStr], SecretStr]:
    def check(secret: SecretStr) -> SecretStr:
        if urlsplit(secret.get_secret_value()).scheme not in schemes:
            raise ValueError(f"must start with {' or '.join(f'{scheme}://' for scheme in schemes)}")
        return secret

    return check


def _one_line(secret: SecretStr) -> SecretStr:
    if not re.fullmatch(r"[\x21-\x7e]+", secret.get_secret_value()):
        raise ValueError("must be visible ASCII characters without spaces or line ends")
    return secret


def _absolute(text: str) -> str:
    if not text.startswith("/") or ".." in text.split("/"):
        raise ValueError("must be an absolute path")
    return text


def _file(path: Path) -> Path:
    if not path.is_file():
        raise ValueError("is not there, or is no file")
    return path


Switch = Annotated[bool, BeforeValidator(parse_switch)]
Kind = Annotated[FleetKind, BeforeValidator(parse_fleet_kind)]
QueueMode = Annotated[Queueing, BeforeValidator(parse_queueing)]
Gpus = Annotated[dict[str, int], BeforeValidator(parse_gpus)]
Quantity = Annotated[str, AfterValidator(_quantity)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
Issuer = Annotated[str, AfterValidator(_issuer)]
Roles = Annotated[dict[str, Role], BeforeValidator(parse_roles)]
Token = Annotated[SecretStr, AfterValidator(_one_line)]
DatabaseUrl = Annotated[SecretStr, AfterValidator(_secret_url("sqlite", "postgresql", "postgresql+psycopg"))]
RedisUrl = Annotated[SecretStr, AfterValidator(_secret_url("redis", "rediss"))]
PodPath = Annotated[str, AfterValidator(_absolute)]
ExistingFile = Annotated[Path, AfterValidator(_file)]
DnsLabel = Annotated[
    str, AfterValidator(_matching(_DNS_LABEL, "lower-case letters, digits and dashes, at most 63, none at an end"))
]
ObjectName = Annotated[str, AfterValidator(_matching(_DNS_NAME, "lower-case letters, digits, dashes and dots"))]
LabelKey = Annotated[str, AfterValidator(_matching(_LABEL_KEY, "the key of a Kubernetes label"))]
BucketName = Annotated[str, AfterValidator(_matching(_BUCKET, "3 to 63 lower-case letters, digits, dots and dashes"))]
