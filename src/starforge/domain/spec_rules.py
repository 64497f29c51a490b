"""Turns a draft into a frozen spec, or into every problem that it has, each with the path of its field."""

import re
from collections.abc import Iterator, Sequence

from starforge.domain.errors import Problem, SpecRefused
from starforge.domain.names import is_project
from starforge.domain.quantities import parse_bytes, show_bytes
from starforge.domain.spec import Deadlines, EnvVar, FleetDefaults, JobSpec, Label, PoolDraft, PoolSpec, SpecDraft

RESERVED_POOLS = frozenset({"head", "headgroup", "memory", "node", "cpu", "gpu"})
RESERVED_ENV = frozenset(
    {"RAY_ADDRESS", "RAY_IP", "RAY_PORT", "FQ_RAY_IP", "RAY_CLUSTER_NAME", "RAY_DASHBOARD_ADDRESS"}
)
MAX_GRACE_SECONDS = 3600
MAX_DEADLINE_SECONDS = 366 * 24 * 3600
_POOL = re.compile(r"[a-z](?:[a-z0-9-]{0,18}[a-z0-9])?")
_SERIES = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_ENV = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_./-]{0,61}[A-Za-z0-9])?")
_IMAGE = re.compile(r"[a-z0-9][a-zA-Z0-9._:/@-]{0,254}")
_LOCAL_QUEUE = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?")
_KEY = re.compile(r"[A-Za-z0-9._-]{1,253}")
_DNS = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")


def freeze(draft: SpecDraft, defaults: FleetDefaults) -> JobSpec:
    """The spec with every default filled in; SpecRefused with all problems if it can't run."""
    problems = [*_head(draft, defaults), *_command(draft.command), *_env(draft.env), *_pools(draft, defaults)]
    problems += [*_labels(draft.labels), *_limits(draft), *_queue(draft.queue, defaults)]
    if problems:
        raise SpecRefused(problems)
    return JobSpec(
        name=draft.name,
        project=draft.project or defaults.project,
        fleet=draft.fleet or defaults.fleet,
        description=draft.description,
        image=(draft.image or defaults.image) if defaults.has_images else None,
        command=draft.command,
        env=draft.env,
        pools=tuple(_pool(pool, defaults) for pool in draft.pools),
        deadlines=_deadlines(draft, defaults.deadlines),
        labels=tuple(sorted(draft.labels, key=lambda label: label.key)),
        priority=draft.priority or 0,
        cancel_grace_seconds=_or(draft.cancel_grace_seconds, defaults.cancel_grace_seconds),
        queue=draft.queue,
    )


def _queue(queue: str | None, defaults: FleetDefaults) -> Iterator[Problem]:
    if queue is not None and not defaults.has_queues:
        message = f"Fleet {defaults.fleet} has no queues to choose from; leave it out to wait in StarForge's own."
        yield Problem("INVALID", ("queue",), message)
    elif queue is not None and not _LOCAL_QUEUE.fullmatch(queue):
        yield Problem("INVALID", ("queue",), f"{queue!r} can't be the name of a Kueue LocalQueue.")


def storable(text: str) -> bool:
    """Whether text can be kept and sent everywhere: no NUL, which databases refuse, and no half of a character."""
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def _bytes(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _deadlines(draft: SpecDraft, defaults: Deadlines) -> Deadlines:
    return Deadlines(
        _or(draft.deadlines.queue_seconds, defaults.queue_seconds),
        _or(draft.deadlines.pre_running_seconds, defaults.pre_running_seconds),
        _or(draft.deadlines.active_seconds, defaults.active_seconds),
    )


def _pool(pool: PoolDraft, defaults: FleetDefaults) -> PoolSpec:
    memory = pool.memory or defaults.memory
    shm = pool.shm_size or show_bytes(min(parse_bytes(defaults.shm_size), parse_bytes(memory) // 2))
    return PoolSpec(
        pool.name,
        pool.series,
        pool.machines,
        pool.gpus_per_machine,
        _or(pool.cpus, defaults.cpus),
        memory,
        shm,
        pool.image if defaults.has_images else None,
    )


def _head(draft: SpecDraft, defaults: FleetDefaults) -> Iterator[Problem]:
    if not draft.name.strip() or len(draft.name) > 100 or not draft.name.isprintable():
        yield Problem("INVALID", ("name",), "Give the job a name of 1 to 100 printable characters.")
    if draft.project is not None and not is_project(draft.project):
        yield Problem("INVALID", ("project",), _lower("The project", draft.project, 63))
    if draft.fleet not in (None, defaults.fleet):
        message = f"There is no fleet {draft.fleet!r}; use {defaults.fleet!r} or leave it out."
        yield Problem("UNKNOWN_FLEET", ("fleet",), message)
    if len(draft.description or "") > 2000:
        yield Problem("TOO_LARGE", ("description",), "The description has more than 2,000 characters; shorten it.")
    if not storable(draft.description or ""):
        yield Problem("INVALID", ("description",), "The description can't hold a NUL or half a character.")
    yield from _image(draft.image, ("image",))
    if defaults.has_images and not draft.image and not defaults.image:
        yield Problem("REQUIRED", ("image",), "Name a container image: this fleet has no default one.")


def _image(image: str | None, field: tuple[str, ...]) -> Iterator[Problem]:
    if image is not None and not _IMAGE.fullmatch(image):
        yield Problem("INVALID", field, f"{image!r} is not the name of a container image.")


def _lower(what: str, value: str, limit: int) -> str:
    return f"{what} {value!r} must be lower-case letters, digits and dashes, start with a letter, at most {limit} long."


def _command(command: Sequence[str]) -> Iterator[Problem]:
    field = ("command",)
    if not command or not command[0]:
        yield Problem("REQUIRED", field, "Say which command to run, for example [python, train.py].")
    if len(command) > 1000 or sum(map(_bytes, command)) > 65536:
        yield Problem("TOO_LARGE", field, "The command has more than 1,000 arguments or 64 KiB; put them into a file.")
    for index, part in enumerate(command):
        if not storable(part):
            yield Problem("INVALID", (*field, str(index)), "An argument can't hold a NUL or half a character.")


def _env(env: Sequence[EnvVar]) -> Iterator[Problem]:
    if len(env) > 200:
        yield Problem("TOO_LARGE", ("env",), f"There are {len(env)} variables; 200 are the most.")
    seen: set[str] = set()
    for index, var in enumerate(env):
        yield from _variable(var, ("env", str(index)), seen)
        seen.add(var.name)


def _variable(var: EnvVar, field: tuple[str, ...], seen: set[str]) -> Iterator[Problem]:
    if not _ENV.fullmatch(var.name):
        yield Problem("INVALID", (*field, "name"), f"{var.name!r} is not a name of an environment variable.")
        return
    if var.name.startswith("STARFORGE_") or var.name in RESERVED_ENV:
        yield Problem("RESERVED", (*field, "name"), f"The variable {var.name} belongs to the platform; use another.")
    if var.name in seen:
        yield Problem("DUPLICATE", (*field, "name"), f"The variable {var.name} is given twice; keep one.")
    if (var.value is None) == (var.secret is None):
        yield Problem("EXCLUSIVE", field, f"Give {var.name} exactly one of a value and a secret.")
    if var.value is not None and (not storable(var.value) or _bytes(var.value) > 131072):
        message = f"The value of {var.name} has a NUL, half a character, or more than 128 KiB."
        yield Problem("INVALID", (*field, "value"), message)
    if var.secret and not (_DNS.fullmatch(var.secret.name) and _KEY.fullmatch(var.secret.key)):
        yield Problem("INVALID", (*field, "secret"), f"{var.name} must name a Secret and one of its keys.")


def _pools(draft: SpecDraft, defaults: FleetDefaults) -> Iterator[Problem]:
    pools = draft.pools
    if not 1 <= len(pools) <= 16:
        yield Problem("REQUIRED" if not pools else "TOO_LARGE", ("pools",), "Ask for 1 to 16 pools of machines.")
    names = [pool.name for pool in pools]
    for index, pool in enumerate(pools):
        field = ("pools", str(index))
        if pool.name in names[:index]:
            yield Problem("DUPLICATE", (*field, "name"), f"Two pools are called {pool.name!r}; rename one.")
        yield from _pool_names(pool, field)
        yield from _pool_sizes(pool, field, defaults)
    yield from _machines_together(pools, defaults)


def _machines_together(pools: Sequence[PoolDraft], defaults: FleetDefaults) -> Iterator[Problem]:
    machines = sum(pool.machines for pool in pools)
    if machines > 1000:
        yield Problem("TOO_LARGE", ("pools",), f"The pools have {machines} machines together; 1,000 are the most.")
    if machines > 1 and not defaults.storage_shared:
        message = f"The storage of fleet {defaults.fleet} can be mounted by one machine only; ask for 1 machine in all."
        yield Problem("STORAGE_NOT_SHARED", ("pools",), message)


def _pool_names(pool: PoolDraft, field: tuple[str, ...]) -> Iterator[Problem]:
    if not _POOL.fullmatch(pool.name):
        yield Problem("INVALID", (*field, "name"), _lower("The pool's name", pool.name, 20))
    if pool.name in RESERVED_POOLS:
        yield Problem("RESERVED", (*field, "name"), f"A pool can't be called {pool.name!r}: Ray uses that name.")
    if not _SERIES.fullmatch(pool.series):
        message = f"{pool.series!r} can't be a GPU series: it is the value of a node label, for example h200."
        yield Problem("UNKNOWN_SERIES", (*field, "series"), message)
    yield from _image(pool.image, (*field, "image"))


def _pool_sizes(pool: PoolDraft, field: tuple[str, ...], defaults: FleetDefaults) -> Iterator[Problem]:
    sizes = (("machines", pool.machines, 1, 1000), ("gpusPerMachine", pool.gpus_per_machine, 0, 64))
    for name, value, least, most in (*sizes, ("cpus", _or(pool.cpus, defaults.cpus), 1, 1024)):
        if not least <= value <= most:
            yield Problem("OUT_OF_RANGE", (*field, name), f"{name} of pool {pool.name!r} must be {least} to {most}.")
    yield from _memory(pool, field, defaults)


def _memory(pool: PoolDraft, field: tuple[str, ...], defaults: FleetDefaults) -> Iterator[Problem]:
    sizes: dict[str, int] = {}
    for name, text in (("memory", pool.memory or defaults.memory), ("shmSize", pool.shm_size or "0")):
        try:
            sizes[name] = parse_bytes(text)
        except ValueError:
            message = f"{text!r} is not a size such as 64Gi."
            yield Problem("INVALID", (*field, name), message)
    if "memory" in sizes and sizes["memory"] < 2**29:
        yield Problem("OUT_OF_RANGE", (*field, "memory"), "A machine needs at least 512Mi of memory to run Ray.")
    if len(sizes) == 2 and sizes["shmSize"] > sizes["memory"]:
        message = f"shmSize counts within memory: {pool.shm_size} is more than the machine has."
        yield Problem("OUT_OF_RANGE", (*field, "shmSize"), message)


def _labels(labels: Sequence[Label]) -> Iterator[Problem]:
    if len(labels) > 32:
        yield Problem("TOO_LARGE", ("labels",), f"There are {len(labels)} labels; 32 are the most.")
    seen: set[str] = set()
    for index, label in enumerate(labels):
        field = ("labels", str(index))
        if not _LABEL.fullmatch(label.key):
            message = f"{label.key!r} is not a label key: letters, digits, dashes, dots, underscores, slashes; 1 to 63."
            yield Problem("INVALID", (*field, "key"), message)
        elif label.key in seen:
            yield Problem("DUPLICATE", (*field, "key"), f"The label {label.key} is given twice; keep one.")
        if len(label.value) > 63 or not label.value.isprintable():
            yield Problem("INVALID", (*field, "value"), "A label's value has at most 63 printable characters.")
        seen.add(label.key)


def _limits(draft: SpecDraft) -> Iterator[Problem]:
    ranges = (
        (("priority",), draft.priority, -100, 100),
        (("cancelGraceSeconds",), draft.cancel_grace_seconds, 0, MAX_GRACE_SECONDS),
        (("deadlines", "queueSeconds"), draft.deadlines.queue_seconds, 0, MAX_DEADLINE_SECONDS),
        (("deadlines", "preRunningSeconds"), draft.deadlines.pre_running_seconds, 0, MAX_DEADLINE_SECONDS),
        (("deadlines", "activeSeconds"), draft.deadlines.active_seconds, 0, MAX_DEADLINE_SECONDS),
    )
    for field, value, least, most in ranges:
        if value is not None and not least <= value <= most:
            yield Problem("OUT_OF_RANGE", field, f"{field[-1]} must be {least} to {most}, not {value}.")
