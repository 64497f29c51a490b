"""Reads the FORGE_* settings and describes them. Used by the wiring and the command line alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from pydantic import ValidationError

from starforge.adapters.setting_models import ClientSettings, FromMapping, Settings, SubmissionMode
from starforge.adapters.setting_problems import PREFIX, missing, not_together, too_few, unknown, wrong
from starforge.domain.errors import Problem, SettingsWrong
from starforge.domain.ports import FleetKind
from starforge.domain.queue import Queueing


def variable(field: str) -> str:
    """`s3_bucket` as FORGE_S3_BUCKET."""
    return f"{PREFIX}{field.upper()}"


_EVERY = {variable(field): info for model in (Settings, ClientSettings) for field, info in model.model_fields.items()}
_ISSUER = (variable("oidc_issuer"), variable("oidc_audience"))
_DATABASE = (variable("database_url"), variable("data_dir"))
Some = TypeVar("Some", bound=FromMapping)


def _given(env: Mapping[str, str]) -> dict[str, str]:
    """Settings that are set; an empty one is not."""
    return {name: text for name, text in env.items() if name.startswith(PREFIX) and text}


def _make(model: type[Some], given: Mapping[str, str], problems: list[Problem]) -> Some:
    """The settings of a model out of `given`; SettingsWrong with `problems` and those of its own, one sentence each."""
    values = {field: given[variable(field)] for field in model.model_fields if variable(field) in given}
    try:
        made = model(**values)
    except ValidationError as error:
        found = error.errors(include_url=False)
        raise SettingsWrong(
            [*(wrong(variable(str(one["loc"][0])), one, _EVERY, given) for one in found), *problems]
        ) from None
    if problems:
        raise SettingsWrong(problems)
    return made


def load_settings(env: Mapping[str, str], *, required: Sequence[str] = ()) -> Settings:
    """The settings in `env`; SettingsWrong with a sentence for each that is wrong, missing or unknown.

    `required` names those that this process can't do without, for example FORGE_REDIS_URL.
    """
    given = _given(env)
    return _make(Settings, given, list(_cross_check(given, required)))


def load_database_settings(env: Mapping[str, str]) -> Settings:
    """Settings of whoever needs the database alone; the rest of `env` may be anything."""
    return _make(Settings, {name: text for name, text in _given(env).items() if name in _DATABASE}, [])


def load_client_settings(env: Mapping[str, str]) -> ClientSettings:
    """What the client verbs need; the rest of `env` may be anything."""
    return _make(ClientSettings, _given(env), [])


def _cross_check(given: Mapping[str, str], required: Sequence[str]) -> Iterator[Problem]:
    yield from (unknown(name, _EVERY) for name in given if name not in _EVERY)
    yield from (missing(name, "this process needs it", _EVERY) for name in required if name not in given)
    s3 = ("FORGE_S3_ENDPOINT", "FORGE_S3_ACCESS_KEY", "FORGE_S3_SECRET_KEY")
    if given.get("FORGE_DEFAULT_FLEET_KIND", "kuberay") == "kuberay":
        absent = [name for name in s3 if name not in given]
        yield from (missing(name, "the kuberay fleet hands code to its Pods by S3", _EVERY) for name in absent)
    else:
        yield from too_few(s3, given, _EVERY)
    oidc = [name for name in given if name.startswith("FORGE_OIDC_")]
    absent = [name for name in _ISSUER if oidc and name not in given]
    yield from (missing(name, f"{oidc[0]} needs it", _EVERY) for name in absent)
    if given.get("FORGE_PERSISTED_ONLY", "").lower() in ("1", "true") and "FORGE_PERSISTED_MANIFEST" not in given:
        yield missing("FORGE_PERSISTED_MANIFEST", "FORGE_PERSISTED_ONLY lets through nothing else", _EVERY)
    yield from not_together("FORGE_K8S_TOKEN", "FORGE_K8S_TOKEN_FILE", given)
    token = "FORGE_K8S_TOKEN_FILE" if "FORGE_K8S_TOKEN_FILE" in given else "FORGE_K8S_TOKEN"
    yield from too_few(("FORGE_K8S_API_SERVER", token), given, _EVERY)


@dataclass(frozen=True)
class Description:
    """A setting as a person reads about it; `default` is empty if there is none."""

    name: str
    default: str
    description: str


def describe() -> Sequence[Description]:
    """Every setting, in the order of the code."""
    return [Description(name, _show(info.default), info.description or "") for name, info in _EVERY.items()]


def as_table() -> str:
    """The settings as the table of docs/operations.md."""
    rows = [f"| `{one.name}` | {f'`{one.default}`' if one.default else ''} | {one.description} |" for one in describe()]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows])


def _show(default: object) -> str:
    if isinstance(default, FleetKind | Queueing):
        return default.lower()
    if isinstance(default, bool):
        return str(default).lower()
    return "" if default is None else str(default.value if isinstance(default, Enum) else default)


__all__ = [
    "ClientSettings", "Description", "Settings", "SubmissionMode",
    "as_table", "describe", "load_client_settings", "load_database_settings", "load_settings", "variable",
]  # fmt: skip
