"""scikit-learn's 1,797 handwritten digits, 8 by 8 pixels, split once and for all."""

import numpy as np
from sklearn.datasets import load_digits

HELD_OUT = 360


def _all() -> tuple[np.ndarray, np.ndarray]:
    found = load_digits()
    order = np.random.default_rng(0).permutation(len(found.target))
    return found.data[order] / 16.0, found.target[order]


def held_out() -> tuple[np.ndarray, np.ndarray]:
    """Images (360, 64) from 0 to 1 and labels (360,) that nobody trains on."""
    images, labels = _all()
    return images[:HELD_OUT], labels[:HELD_OUT]


def training_part(number: int, of: int) -> tuple[np.ndarray, np.ndarray]:
    """Every `of`-th of the other 1,437, from the one at `number` on."""
    images, labels = _all()
    return images[HELD_OUT + number :: of], labels[HELD_OUT + number :: of]
