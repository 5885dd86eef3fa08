"""Rounds that were followed, to be gone through again: with what was believed before and after them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.base.types import Matrix, Vector
from onlooker.logs.log import BanditLog
from onlooker.logs.parts import Parts, TakePart, parts_of
from onlooker.observers.dynamic.bank import Bank, Block
from onlooker.observers.dynamic.offers import rows_in_units

STRETCH = 512
"""Rounds of a stretch at most."""
STRETCH_BYTES = 1 << 25
"""Memory that the beliefs of a stretch may take."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """Rounds that were followed."""

    log: BanditLog | Parts
    gaps: Vector
    """Before each of them."""
    before: Bank
    after: Bank

    @classmethod
    def of(cls, log: BanditLog | Parts, times: Vector | None, before: Bank | None, after: Bank) -> Rounds:
        """Rounds that were followed; None stands for what is believed before the first round."""
        start = Bank.start(after.units) if before is None else before
        gaps, _ = start.clock.gaps(after.n_rounds - start.n_rounds, times)
        return cls(log, gaps, start, after)

    @property
    def first(self) -> int:
        """Number of the first of them."""
        return self.before.n_rounds

    @property
    def n_rounds(self) -> int:
        """How many there are."""
        return self.after.n_rounds - self.before.n_rounds

    @property
    def best(self) -> int:
        """The member that predicted their picks best."""
        return int(np.argmax(self.after.totals - self.before.totals))

    @property
    def anchor(self) -> Matrix:
        """The weights that members revert to, shape (1, d): now that all is known, those at the end."""
        return self.after.members[0].mean[None]

    def take(self, start: int, stop: int) -> Block:
        """Some of them, all in one part, and the gap before the round that follows where there is one."""
        if isinstance(self.log, Parts):
            part = next(iter(self.log.run(TakePart(), start, stop)))
        else:
            part = self.log[start:stop]
        rows, picks, _ = rows_in_units(part, self.after.units)
        return Block(rows, picks, part.offsets, part.chosen, self.gaps[start : stop + 1], self.first + start)

    def stretches(self) -> list[tuple[int, int]]:
        """Where to cut them, so that the beliefs of a stretch fit into memory."""
        d = len(self.after.units)
        size = 4 * 8 * (d * d if self.after.members[0].spread.ndim == 2 else d)
        longest = min(max(STRETCH_BYTES // size, 16), STRETCH)
        bounds: list[tuple[int, int]] = []
        for part in parts_of(self.log):
            done = bounds[-1][1] if bounds else 0
            stop = done + part.n_rounds
            bounds += [(start, min(start + longest, stop)) for start in range(done, stop, longest)]
        return bounds
