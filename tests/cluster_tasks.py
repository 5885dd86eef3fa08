"""What the tests of clusters run on parts of a log: workers import it by name."""

import os
import time
from dataclasses import dataclass


def process(part, first):  # noqa: ARG001  the shape of a task
    """Which process keeps the part."""
    return os.getpid()


def rounds(part, first):
    """What a part holds, and where it begins."""
    return first, part.n_rounds, float(part.features.sum())


@dataclass(frozen=True)
class Slow:
    """Takes a while, and leaves a note that it has begun."""

    seconds: float
    note: str

    def __call__(self, part, first):
        with open(self.note, "a", encoding="utf-8") as file:
            file.write(f"{os.getpid()} {first}\n")
        time.sleep(self.seconds)
        return rounds(part, first)


def wrong(part, first):  # noqa: ARG001
    """Fails with an error that nobody expected."""
    return part.n_rounds / 0
