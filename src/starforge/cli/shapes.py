"""The shape of starforge.yaml: that of JobSpecInput, which a test compares it with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Text:
    """Text, which YAML wants in quotes where it looks like something else."""


@dataclass(frozen=True)
class Number:
    """A whole number."""


@dataclass(frozen=True)
class ListOf:
    item: "Shape"
    example: str


@dataclass(frozen=True)
class Fields:
    """Keys that are required, and others."""

    required: Mapping[str, "Shape"]
    optional: Mapping[str, "Shape"] = field(default_factory=dict)

    @property
    def all(self) -> Mapping[str, "Shape"]:
        return {**self.required, **self.optional}


Shape: TypeAlias = Text | Number | ListOf | Fields

_TEXT, _NUMBER = Text(), Number()
_SECRET = Fields({"name": _TEXT, "key": _TEXT})
_ENV = Fields({"name": _TEXT}, {"value": _TEXT, "secret": _SECRET})
_LABEL = Fields({"key": _TEXT, "value": _TEXT})
_DEADLINES = Fields({}, {"queueSeconds": _NUMBER, "preRunningSeconds": _NUMBER, "activeSeconds": _NUMBER})
_POOL = Fields(
    {"name": _TEXT, "series": _TEXT, "machines": _NUMBER, "gpusPerMachine": _NUMBER},
    {"cpus": _NUMBER, "memory": _TEXT, "shmSize": _TEXT, "image": _TEXT},
)
JOB_SPEC = Fields(
    {
        "name": _TEXT,
        "command": ListOf(_TEXT, "[python3, train.py]"),
        "pools": ListOf(_POOL, "[{name: train, series: h200, machines: 1, gpusPerMachine: 8}]"),
    },
    {
        "project": _TEXT,
        "fleet": _TEXT,
        "description": _TEXT,
        "image": _TEXT,
        "env": ListOf(_ENV, "[{name: SEED, value: '1'}]"),
        "deadlines": _DEADLINES,
        "labels": ListOf(_LABEL, "[{key: team, value: vision}]"),
        "priority": _NUMBER,
        "cancelGraceSeconds": _NUMBER,
        "queue": _TEXT,
    },
)
