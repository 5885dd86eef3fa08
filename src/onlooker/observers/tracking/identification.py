"""Which weights the picks identify, judged on all rounds so far.

A weight that was identified stays so: more rounds can only add to what is known. So the variation within the rounds is
added up for the other features alone, and for none once all are identified, which in most logs takes a few rounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from onlooker.base.types import Matrix
from onlooker.logs.log import BanditLog
from onlooker.observers.tracking.variation import unidentified

CLEAR = 1e-4
"""A feature is done with once no direction that it is part of varies by less than this fraction of its features.

Far above `inverses.UNIDENTIFIED`, below which a direction counts as not identified: ten thousand times as many rounds
that do not identify the features separately would not change that.
"""


@dataclass(eq=False)
class Identification:
    """What is known of which weights are identified.

    Examples
    --------
    >>> rows = np.random.default_rng(0).normal(size=(100, 4, 3))
    >>> rows[:90, :, 2] = 7.0
    >>> log, found = BanditLog.from_dense(rows, np.zeros(100, dtype=int)), Identification.start(3)
    >>> found.take_in(log[:90])
    >>> found.flags()[0].tolist(), found.open.tolist()
    ([False, False, True], [False, False, True])
    >>> found.take_in(log[90:])
    >>> found.flags()[0].tolist()
    [False, False, False]
    """

    information: Matrix
    """Variation of the features within the rounds, shape (d, d); of those not open any more, until they were done."""
    open: NDArray[np.bool_]
    """Features that are still looked at, shape (d,)."""
    n_rounds: int = 0
    """Rounds taken in."""

    @classmethod
    def start(cls, n_features: int) -> Identification:
        """Before the first round."""
        return cls(np.zeros((n_features, n_features)), np.ones(n_features, dtype=bool))

    @classmethod
    def resume(cls, information: Matrix, n_rounds: int) -> Identification:
        """From variation that was added up for all features alike."""
        found = cls(information, np.ones(len(information), dtype=bool), n_rounds)
        found._close()
        return found

    def take_in(self, log: BanditLog) -> None:
        """Add the next rounds; parts of a log, one after the other, give the same as the whole."""
        from onlooker.kernels.differences import add_differences

        done = 0
        while done < log.n_rounds and self.open.any():
            # Which features are done is asked at powers of two, whatever the parts are.
            ahead = (1 << self.n_rounds.bit_length()) - self.n_rounds
            part = log[done : done + ahead]
            add_differences(part.dense, part.offsets, np.flatnonzero(self.open), self.information)
            self.n_rounds += part.n_rounds
            done += part.n_rounds
            if self.n_rounds.bit_count() == 1:
                self._close()
        self.n_rounds += log.n_rounds - done

    def grow(self, count: int) -> None:
        """Have so many features more, which did not vary so far."""
        self.information = np.pad(self.information, (0, count))
        self.open = np.append(self.open, np.ones(count, dtype=bool))

    def flags(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Which features never varied within a round, and which only together with others, each of shape (d,)."""
        constant, tangled = np.zeros((2, len(self.open)), dtype=bool)
        if self.open.any():
            constant[self.open], tangled[self.open] = unidentified(self._open_part())
        return constant, tangled

    def _open_part(self) -> Matrix:
        return self.information[np.ix_(self.open, self.open)]

    def _close(self) -> None:
        constant, tangled = unidentified(self._open_part(), CLEAR)
        self.open[self.open] = constant | tangled
