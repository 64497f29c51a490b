"""The code of a busy organisation's jobs: small, real Python that reports its progress."""

from starforge.domain.capsule import InlineFile

MODELS = ("vit-large", "llama-3b", "whisper-small", "policy-net", "unet-xl", "t5-base")

_TRAIN = '''"""Trains a model: {model}, {stage}."""

from trainer import Trainer

from starforge import progress

STEPS = 100


def main() -> None:
    trainer = Trainer(layers={layers})
    for step in range(1, STEPS + 1):
        loss, accuracy = trainer.step()
        progress(step, STEPS, loss=loss, accuracy=accuracy)


if __name__ == "__main__":
    main()
'''

_TRAINER = '''"""A least-squares fit by gradient descent, as a stand-in for something large."""

import random


class Trainer:
    def __init__(self, layers: int) -> None:
        self.weights = [0.0] * layers
        self.goal = [random.uniform(-1, 1) for _ in range(layers)]

    def step(self) -> tuple[float, float]:
        pairs = list(zip(self.weights, self.goal, strict=True))
        self.weights = [weight + 0.05 * (goal - weight) for weight, goal in pairs]
        loss = sum((goal - weight) ** 2 for weight, goal in pairs) / len(pairs)
        return loss, 1 / (1 + loss)
'''


def code_of(model: str, stage: str) -> tuple[InlineFile, ...]:
    """The files of a job; jobs of the same model and stage have equal code."""
    layers = 8 * (1 + MODELS.index(model))
    train = _TRAIN.format(model=model, stage=stage, layers=layers)
    return (
        InlineFile("train.py", train),
        InlineFile("trainer.py", _TRAINER),
        InlineFile("README.md", f"# {model}\n\nThe {stage} run. Start it with `python3 train.py`.\n"),
    )
