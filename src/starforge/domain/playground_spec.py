"""Turns what is asked of a playground into a frozen spec, or into every problem that it has."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from posixpath import normpath

from starforge.domain.errors import Problem, SpecRefused
from starforge.domain.names import JobId
from starforge.domain.playground import PORT, PlaygroundSpec
from starforge.domain.spec import (
    DeadlinesDraft,
    EnvVar,
    FleetDefaults,
    Label,
    PlaygroundDefaults,
    PoolDraft,
    SpecDraft,
)
from starforge.domain.spec_rules import freeze, storable

POOL = "server"
ARGS_MAX, ARG_BYTES_MAX = 100, 8192
TTL_MIN_S = IDLE_MIN_S = 60
COMMAND = ("vllm", "serve")
OURS = (
    "--api-key", "--config", "--host", "--model", "--port", "--root-path", "--served-model-name", "--ssl-ca-certs",
    "--ssl-cert-reqs", "--ssl-certfile", "--ssl-keyfile", "--uds",
)  # fmt: skip
"""Options of `vllm serve` that StarForge sets, or that would put the server out of its reach."""
_OUR_ENV = frozenset({"VLLM_API_KEY"})
_PARALLEL = ("--tensor-parallel-size", "-tp", "--pipeline-parallel-size", "-pp", "--data-parallel-size", "-dp")
_HUB = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(?:/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")


@dataclass(frozen=True)
class PlaygroundDraft:
    """A playground as asked for, not yet checked; what is None comes from the fleet's defaults."""

    name: str
    series: str
    gpus: int
    model: str | None = None
    project: str | None = None
    fleet: str | None = None
    image: str | None = None
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()
    labels: tuple[Label, ...] = ()
    ttl_seconds: int | None = None
    idle_seconds: int | None = None
    from_job: JobId | None = None


def freeze_playground(draft: PlaygroundDraft, defaults: FleetDefaults) -> PlaygroundSpec:
    """The spec with every default filled in; SpecRefused with all problems if it can't be served."""
    own = defaults.playgrounds
    problems = [*_model(draft, own), *_args(draft.args), *_env(draft.env), *_limits(draft, own)]
    try:
        machine = freeze(_machine(draft, own), replace(defaults, image=own.image))
    except SpecRefused as refused:
        problems += [replace(problem, field=_field(problem.field)) for problem in refused.problems]
    if problems:
        raise SpecRefused(problems)
    model = draft.model or ""
    return PlaygroundSpec(
        machine=machine,
        model=model,
        served_model_name=model.rpartition("/")[2] if model.startswith("/") else model,
        args=draft.args,
        ttl_seconds=own.ttl_s if draft.ttl_seconds is None else draft.ttl_seconds,
        idle_seconds=own.idle_s if draft.idle_seconds is None else draft.idle_seconds,
        from_job=draft.from_job,
    )


def options(spec: PlaygroundSpec, *, host: str, port: int = PORT) -> tuple[str, ...]:
    """What follows `vllm serve`: the model, what StarForge sets, and the caller's own arguments."""
    gpus = spec.machine.gpus
    split = gpus > 1 and not any(_name(arg) in _PARALLEL for arg in spec.args)
    ours = ("--host", host, "--port", str(port), "--served-model-name", spec.served_model_name)
    return (spec.model, *ours, *(("--tensor-parallel-size", str(gpus)) if split else ()), *spec.args)


def _machine(draft: PlaygroundDraft, own: PlaygroundDefaults) -> SpecDraft:
    pool = PoolDraft(POOL, draft.series, 1, draft.gpus, own.cpus, own.memory)
    return SpecDraft(
        name=draft.name,
        command=COMMAND,
        pools=(pool,),
        project=draft.project,
        fleet=draft.fleet,
        image=draft.image,
        env=draft.env,
        deadlines=DeadlinesDraft(0, own.pre_running_s, 0),
        labels=draft.labels,
    )


_FIELDS = {"series": "series", "gpusPerMachine": "gpus"}


def _field(path: tuple[str, ...]) -> tuple[str, ...]:
    """The caller gave no pools: a problem of the only one is of the field that it was made from."""
    return (_FIELDS.get(path[2], path[2]),) if path[0] == "pools" and len(path) > 2 else path


def _model(draft: PlaygroundDraft, own: PlaygroundDefaults) -> Iterator[Problem]:
    field, model = ("model",), draft.model
    if not model:
        message = "Name the model: a hub name such as org/name, or a path below the storage root."
        if draft.from_job:
            message = f"Name the path of the model that {draft.from_job} made: jobs do not say where their results are."
        yield Problem("REQUIRED", field, message)
    elif model.startswith("/"):
        below = normpath(model) == model and model.startswith(f"{own.storage_root.rstrip('/')}/")
        if not below or not storable(model) or len(model) > 1024:
            yield Problem("INVALID", field, f"A path of a model lies below the storage root {own.storage_root}.")
    elif not _HUB.fullmatch(model):
        message = f"{model!r} is neither a hub name such as org/name nor a path below {own.storage_root}."
        yield Problem("INVALID", field, message)


def _args(args: Sequence[str]) -> Iterator[Problem]:
    if len(args) > ARGS_MAX:
        yield Problem("TOO_LARGE", ("args",), f"There are {len(args)} arguments; {ARGS_MAX} are the most.")
    for index, arg in enumerate(args):
        field = ("args", str(index))
        if not storable(arg) or len(arg.encode(errors="surrogatepass")) > ARG_BYTES_MAX:
            yield Problem("INVALID", field, "An argument has a NUL, half a character, or more than 8 KiB.")
        elif _is_ours(arg):
            message = f"The option {_name(arg)} is StarForge's own to set; leave it out."
            yield Problem("RESERVED", field, message)


def _name(arg: str) -> str:
    return arg.partition("=")[0].replace("_", "-")


def _is_ours(arg: str) -> bool:
    """Whether it is one of OURS, which may be written with underscores or cut short."""
    return arg.startswith("--") and any(option.startswith(_name(arg)) for option in OURS)


def _env(env: Sequence[EnvVar]) -> Iterator[Problem]:
    for index, variable in enumerate(env):
        if variable.name in _OUR_ENV:
            message = f"The variable {variable.name} would shut StarForge out of the server; leave it out."
            yield Problem("RESERVED", ("env", str(index), "name"), message)


def _limits(draft: PlaygroundDraft, own: PlaygroundDefaults) -> Iterator[Problem]:
    limits = (("ttlSeconds", draft.ttl_seconds, TTL_MIN_S), ("idleSeconds", draft.idle_seconds, IDLE_MIN_S))
    for name, value, least in limits:
        if value is not None and not least <= value <= own.max_s:
            yield Problem("OUT_OF_RANGE", (name,), f"{name} must be {least} to {own.max_s:,}.")
