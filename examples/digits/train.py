"""Trains a classifier of handwritten digits with Ray: trainers in one pool, an evaluator in another.

Each trainer holds a part of the images. In every epoch all of them start from the same parameters and go through
their own images; the mean of what they arrive at is where the next epoch starts. The evaluator judges that mean on
images that nobody trained on.
"""

import os

import ray

import starforge
from digits import held_out, training_part
from network import SEED, Parameters, average, initial, loss_and_accuracy, train_epoch

TRAIN_POOL = "train"
EVAL_POOL = "eval"
# A pool's name is a Ray resource of which each of its machines has 1: a little of it pins an actor to the pool.
A_LITTLE = 0.001
EPOCHS = 20
TRAINERS = int(os.environ.get("TRAINERS", "2"))


@ray.remote(num_cpus=0, resources={TRAIN_POOL: A_LITTLE})
class Trainer:
    def __init__(self, number: int, of: int) -> None:
        self._images, self._labels = training_part(number, of)
        self._number = number

    def epoch(self, parameters: Parameters, number: int) -> Parameters:
        seed = (SEED, self._number, number)
        return train_epoch(parameters, self._images, self._labels, seed=seed)


@ray.remote(num_cpus=0, resources={EVAL_POOL: A_LITTLE})
class Evaluator:
    def __init__(self) -> None:
        self._images, self._labels = held_out()
        with open("classes.txt", encoding="utf-8") as file:
            self._classes = file.read().split()

    def introduce(self) -> str:
        """What this machine has of the job: a file of its code, and its environment."""
        note = os.environ.get("RUN_NOTE", "")
        print(f"evaluator: classes {' '.join(self._classes)}", flush=True)
        print(f"evaluator: note {note!r}", flush=True)
        return note

    def judge(self, parameters: Parameters) -> tuple[float, float]:
        return loss_and_accuracy(parameters, self._images, self._labels)


def main() -> None:
    ray.init()
    evaluator = Evaluator.remote()
    trainers = [Trainer.remote(number, TRAINERS) for number in range(TRAINERS)]
    ray.get(evaluator.introduce.remote())
    parameters = initial()
    for epoch in range(1, EPOCHS + 1):
        shared = ray.put(parameters)
        parameters = average(ray.get([trainer.epoch.remote(shared, epoch) for trainer in trainers]))
        loss, accuracy = ray.get(evaluator.judge.remote(parameters))
        print(f"epoch {epoch}/{EPOCHS} loss {loss:.4f} accuracy {accuracy:.4f}", flush=True)
        starforge.progress(epoch, EPOCHS, loss=loss, accuracy=accuracy)


if __name__ == "__main__":
    main()
