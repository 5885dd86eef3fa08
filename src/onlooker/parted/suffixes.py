"""Fits of many suffixes of a log in parts: every pass over the parts takes all of them a step further."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import reduce

import numpy as np

from onlooker.errors import ConvergenceWarning
from onlooker.inverses import inverse
from onlooker.log import BanditLog
from onlooker.objective import FAIR, Pass, Sums
from onlooker.parted.objective import RunPass
from onlooker.parts import Parts
from onlooker.types import Index, Matrix, Progress, Vector

MAX_PASSES = 50

_DESCENT = 1e-4
"""Part of what a step promises that it must keep, as is usual."""


@dataclass(frozen=True, eq=False)
class SuffixSums:
    """What a pass found in the rounds of one suffix."""

    sums: Sums
    """Loss, gradient and Hessian."""
    n_choices: int
    """Rounds that offer a choice."""
    null_loss: float
    """Loss of picking uniformly in all of them."""

    def __add__(self, later: SuffixSums) -> SuffixSums:
        return SuffixSums(self.sums + later.sums, self.n_choices + later.n_choices, self.null_loss + later.null_loss)


@dataclass(frozen=True, eq=False)
class RunPasses:
    """One pass over the rounds of a part for every suffix, each at a theta of its own."""

    starts: tuple[int, ...]
    """Where each suffix starts."""
    thetas: Matrix
    """Where to evaluate, one row a suffix."""

    def __call__(self, part: BanditLog, first: int) -> list[SuffixSums | None]:
        """What each suffix has in the part that begins at round `first`; None where it has no round there."""
        found: list[SuffixSums | None] = []
        for start, theta in zip(self.starts, self.thetas, strict=True):
            rounds = part[max(0, start - first) :]
            sums = RunPass(Pass(theta=theta, share=FAIR))(rounds, first) if rounds.n_rounds else None
            arms = rounds.n_arms
            choices, chance = int(np.count_nonzero(arms > 1)), float(np.log(arms).sum())
            found.append(None if sums is None else SuffixSums(sums, choices, chance))
        return found


def refine_suffixes(
    parts: Parts,
    burn_ins: Index,
    thetas: Matrix,
    *,
    l2: float,
    tolerance: float,
    progress: Progress | None = None,
) -> tuple[Matrix, Vector]:
    """Theta and mean loss for the suffix after each burn-in, from thetas near them; NaN where it holds no choice.

    Newton's method with halved steps where one leads up, for all suffixes at once; from zero where that is nearer.
    """
    starts, first = np.unique(burn_ins, return_index=True)
    searches = [_Search(start, np.nan_to_num(thetas[at]), l2) for start, at in zip(starts.tolist(), first, strict=True)]
    for _ in range(MAX_PASSES):
        going = [search for search in searches if not search.done]
        if progress is not None:
            progress(len(searches) - len(going), len(searches))
        if not going:
            break
        task = RunPasses(tuple(search.start for search in going), np.array([search.theta for search in going]))
        nothing: list[SuffixSums | None] = [None] * len(going)
        totals = reduce(_joined, parts.run(task, min(task.starts)), nothing)
        for search, found in zip(going, totals, strict=True):
            search.step(found, tolerance)
    open_ends = sum(not search.done for search in searches)
    if open_ends:
        warnings.warn(
            f"{open_ends} of {len(searches)} fits did not end within {MAX_PASSES} passes: bring the features to "
            "similar scales, or try a larger l2",
            ConvergenceWarning,
            stacklevel=4,
        )
    place = np.searchsorted(starts, burn_ins)
    best = np.array([search.best for search in searches])[place]
    return best, np.array([search.loss for search in searches])[place]


class _Search:
    """The search for one suffix's minimum."""

    def __init__(self, start: int, theta: Vector, l2: float) -> None:
        self.start, self.theta, self.l2 = start, theta, l2
        self.best, self.loss, self.done = np.full_like(theta, np.nan), np.nan, False
        self._here: tuple[Vector, float, float, Vector] | None = None

    def step(self, found: SuffixSums | None, tolerance: float) -> None:
        """Go on from what a pass found at `theta`."""
        if found is None or not found.n_choices:
            self.done = True
            return
        theta, n = self.theta, found.n_choices
        at = found.sums.curved_point(theta, n, self.l2)
        if self._here is None and at.value > found.null_loss / n and theta.any():
            self.theta = np.zeros_like(theta)
            return
        if self._here is not None and self._climbs(at.value):
            return
        self.best, self.loss = theta, at.loss
        step = -inverse(at.hessian) @ at.gradient
        slope = float(at.gradient @ step)
        self.done = max(max(0.0, -slope) ** 0.5, float(np.abs(at.gradient).max())) <= tolerance
        if not self.done:
            self._here = theta, at.value, slope, step
            self.theta = theta + step

    def _climbs(self, value: float) -> bool:
        """Whether the last step led up; then half of it is tried."""
        assert self._here is not None
        theta, before, slope, step = self._here
        if value <= before + max(_DESCENT * slope, 1e-14 * max(1.0, abs(before))):
            return False
        self._here = theta, before, slope / 2, step / 2
        self.theta = theta + step / 2
        return True


def _joined(before: list[SuffixSums | None], later: list[SuffixSums | None]) -> list[SuffixSums | None]:
    return [two if one is None else one if two is None else one + two for one, two in zip(before, later, strict=True)]
