"""What the command of a run prints, as the runner writes it: frames, with the platform's own lines among them."""

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import chain, count, takewhile
from math import exp
from random import Random

from starforge.adapters.simulated.timeline import End, Timeline
from starforge.domain.observation import RawLine

_FRAME_BYTES = 4000
_SAMPLES = 1_281_167
_TRACEBACK = (
    "Traceback (most recent call last):",
    '  File "/capsule/train.py", line 48, in <module>',
    "    main()",
    '  File "/capsule/train.py", line 37, in main',
    "    loss = trainer.step(batch)",
    "           ^^^^^^^^^^^^^^^^^^^",
    '  File "/capsule/trainer.py", line 112, in step',
    '    raise FloatingPointError(f"gradient of {name} is not finite after {tries} tries")',
    "FloatingPointError: gradient of layers.7.attention.wq is not finite after 3 tries",
)

Said = tuple[datetime, str]


def lines(life: Timeline, until: datetime) -> list[RawLine]:
    """The driver's stream up to a time; later calls give the same lines and maybe more."""
    return list(takewhile(lambda line: line.at is not None and line.at <= until, driver_stream(life)))


def driver_stream(life: Timeline) -> Iterator[RawLine]:
    """The driver's stream with its times, in order; without an end for a run that has none."""
    return (RawLine(frame, at) for at, text in _said(life) for frame in frames(at, text.encode()))


def frames(at: datetime, line: bytes) -> Iterator[bytes]:
    """A line as frames without their newlines, each at most 4000 bytes with it."""
    room = _FRAME_BYTES - len(_head(at, ends=True)) - 1
    pieces = [line[start : start + room] for start in range(0, len(line), room)] or [b""]
    for index, piece in enumerate(pieces):
        yield _head(at, ends=index == len(pieces) - 1) + piece


def _head(at: datetime, *, ends: bool) -> bytes:
    return f"::starforge-out {at.timestamp():.6f} {'.' if ends else '+'} ".encode()


def _said(life: Timeline) -> Iterator[Said]:
    if life.started_at is None:
        return
    yield life.started_at, _wire({"type": "started", "at": life.started_at.timestamp(), "nonce": life.record.nonce})
    end = life.end
    until_end = takewhile(lambda said: end is None or said[0] <= end.at, chain(_opening(life), _steps(life)))
    yield from until_end
    if end is not None:
        yield from ((end.at, text) for text in _last_words(life, end))


def _opening(life: Timeline) -> Iterator[Said]:
    start = life.started_at or life.record.launched_at
    gpus = life.record.spec.gpus
    yield start, f"Training {life.record.spec.name} on {life.record.spec.machines} machine(s) with {gpus} GPU(s)"
    yield start, f"Reading {_SAMPLES:,} samples in 128 shards"


def _steps(life: Timeline) -> Iterator[Said]:
    chance, made, start = life.world.chance(life.record.run, "metrics"), life.plan, life.started_at
    pid = chance.randint(1000, 30000)
    total = made.steps if made.last_step is not None else None
    steps = count(1) if made.last_step is None else range(1, made.last_step + 1)
    for step in steps:
        at = life.world.after(start or life.record.launched_at, step * made.step_s)
        metrics = _metrics(step / made.steps, chance)
        prefix = f"(Trainer pid={pid}) " if life.record.spec.machines > 1 else ""
        yield at, prefix + _wire({"type": "progress", "step": step, "total": total, "metrics": metrics})
        yield at, f"{prefix}step {step}/{total or '?'} loss={metrics['loss']} accuracy={metrics['accuracy']}"


def _metrics(share: float, chance: Random) -> dict[str, float | str]:
    """Values as on the wire: the loss falls and the accuracy rises, with noise; now and then a loss is not a number."""
    loss = 0.05 + 2.25 * exp(-3.2 * share) * chance.uniform(0.92, 1.08)
    accuracy = min(0.99, 0.1 + 0.87 * (1 - exp(-3.5 * share)) + chance.gauss(0, 0.008))
    spike = chance.random() < 0.01
    return {
        "loss": "NaN" if spike else round(loss, 5),
        "accuracy": round(max(accuracy, 0.0), 5),
        "samples_per_second": round(chance.uniform(900, 1100), 1),
    }


def _last_words(life: Timeline, end: End) -> Iterator[str]:
    if end.signal == 15:
        yield "Received SIGTERM: keeping the last checkpoint and leaving"
    elif end.told and end.signal is None:
        yield from _TRACEBACK if end.exit_code else (f"Training is done after {life.plan.steps} steps",)
    if end.told:
        code = {"type": "exit", "code": end.exit_code, "signal": end.signal, "at": end.at.timestamp()}
        yield _wire({**code, "nonce": life.record.nonce})


def _wire(message: dict[str, object]) -> str:
    return f"::starforge:: {json.dumps(message)}"
