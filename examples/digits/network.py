"""A network with one hidden layer, in numpy: its parameters, an epoch of training, and how good it is."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

SEED = 20
PIXELS, HIDDEN, CLASSES = 64, 64, 10
BATCH = 16
RATE = 0.15


class Parameters(NamedTuple):
    w1: np.ndarray
    b1: np.ndarray
    w2: np.ndarray
    b2: np.ndarray


def initial() -> Parameters:
    draw = np.random.default_rng(SEED)
    w1 = draw.normal(0, np.sqrt(2 / PIXELS), (PIXELS, HIDDEN))
    w2 = draw.normal(0, np.sqrt(2 / HIDDEN), (HIDDEN, CLASSES))
    return Parameters(w1, np.zeros(HIDDEN), w2, np.zeros(CLASSES))


def average(many: Sequence[Parameters]) -> Parameters:
    return Parameters(*(np.mean(same, axis=0) for same in zip(*many, strict=True)))


def train_epoch(parameters: Parameters, images: np.ndarray, labels: np.ndarray, *, seed: Sequence[int]) -> Parameters:
    """Once through the images in a random order, by stochastic gradient descent."""
    order = np.random.default_rng(seed).permutation(len(labels))
    for start in range(0, len(order), BATCH):
        batch = order[start : start + BATCH]
        slopes = _gradient(parameters, images[batch], labels[batch])
        parameters = Parameters(*(value - RATE * slope for value, slope in zip(parameters, slopes, strict=True)))
    return parameters


def loss_and_accuracy(parameters: Parameters, images: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Mean cross-entropy in nats, and the share of images whose digit is recognised."""
    _hidden, chances = _forward(parameters, images)
    loss = -np.log(chances[np.arange(len(labels)), labels] + 1e-12).mean()
    return float(loss), float((chances.argmax(axis=1) == labels).mean())


def _forward(parameters: Parameters, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    hidden = np.maximum(images @ parameters.w1 + parameters.b1, 0)
    scores = hidden @ parameters.w2 + parameters.b2
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return hidden, powers / powers.sum(axis=1, keepdims=True)


def _gradient(parameters: Parameters, images: np.ndarray, labels: np.ndarray) -> Parameters:
    hidden, chances = _forward(parameters, images)
    errors = chances.copy()
    errors[np.arange(len(labels)), labels] -= 1
    errors /= len(labels)
    back = (errors @ parameters.w2.T) * (hidden > 0)
    return Parameters(images.T @ back, back.sum(axis=0), hidden.T @ errors, errors.sum(axis=0))
