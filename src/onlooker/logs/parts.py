"""A log in parts, each worked on where it is: in files larger than memory, or in the memory of other machines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from onlooker.logs.categories import Categories
from onlooker.logs.log import BanditLog, as_log

Result_co = TypeVar("Result_co", covariant=True)
Result = TypeVar("Result")


class Task(Protocol[Result_co]):
    """What to do with a part. It travels to where the part is, so it can be pickled, and so can what it finds."""

    def __call__(self, part: BanditLog, first: int) -> Result_co:
        """Work on a part whose first round is round `first` of the log."""


class Described(Protocol):
    """What is known of a log wherever its rounds are stored."""

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """One name per feature, or None."""

    @property
    def n_features(self) -> int:
        """Number of features, d."""

    @property
    def categories(self) -> Categories | None:
        """Levels of every category by its column, the reference first, or None."""


@runtime_checkable
class Parts(Described, Protocol):
    """Whole rounds in parts, oldest first; the same parts every time."""

    def run(self, task: Task[Result], start: int = 0, stop: int | None = None) -> Iterator[Result]:
        """Run the task on every part that has rounds from `start` to before `stop`, cut to these; results in order."""


@dataclass(frozen=True)
class TakePart:
    """A task that returns the part itself."""

    def __call__(self, part: BanditLog, first: int) -> BanditLog:  # noqa: ARG002  the protocol's shape
        """Return the part."""
        return part


def parts_of(log: BanditLog | Parts) -> Iterator[BanditLog]:
    """A log's parts, oldest first; a log in memory is one.

    Examples
    --------
    >>> import numpy as np
    >>> list(parts_of(BanditLog.from_dense(np.zeros((3, 2, 1)), chosen=[0, 1, 0])))
    [BanditLog(3 rounds, 2 arms, 1 feature, float64)]
    """
    if isinstance(log, Parts):
        yield from log.run(TakePart())
    else:
        yield as_log(log)
