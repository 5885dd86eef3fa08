"""Fits of many suffixes of a log in parts: every pass over the parts takes all of them a step further."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import reduce

import numpy as np

from onlooker.base.errors import ConvergenceWarning
from onlooker.base.numerics import falls, inverse, largest, rounding
from onlooker.base.types import Index, Matrix, Progress, Vector
from onlooker.imitation.newton import CAUTION
from onlooker.imitation.objective import FAIR, Pass
from onlooker.imitation.softmax import accumulated
from onlooker.logs.log import BanditLog
from onlooker.logs.parts import Parts

MAX_PASSES = 50

CURVED_ROUNDS_PER_FEATURE = 400
"""A suffix's curvature is found from every so many of its rounds, about this many per feature.

They tell it to some hundredths, which is what a step then leaves of the decrement.
"""

_SLOW, _CLOSER = 0.3, 16
"""A step that leaves more than this of the decrement, or leads up, asks for the curvature of so many times as many."""

_LEAVES = 0.05
"""A step whose curvature is that of some rounds is taken to leave this part of the decrement at least."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SuffixSums:
    """What a pass found in the rounds of one suffix."""

    loss: float
    """Of all of them."""
    gradient: Vector
    """Of it, shape (d,)."""
    n_choices: int
    """Rounds that offer a choice."""
    null_loss: float
    """Loss of picking uniformly in all of them."""
    upper: Matrix
    """Upper triangle of the Hessian of some of them, shape (d, d)."""
    n_curved: int
    """Those of them that offer a choice."""

    def __add__(self, later: SuffixSums) -> SuffixSums:
        return SuffixSums(
            loss=self.loss + later.loss,
            gradient=self.gradient + later.gradient,
            n_choices=self.n_choices + later.n_choices,
            null_loss=self.null_loss + later.null_loss,
            upper=self.upper + later.upper,
            n_curved=self.n_curved + later.n_curved,
        )


@dataclass(frozen=True, eq=False)
class RunPasses:
    """One pass over the rounds of a part for every suffix, each at a theta of its own."""

    starts: tuple[int, ...]
    """Where each suffix starts."""
    strides: tuple[int, ...]
    """How far apart the rounds are whose curvature is found."""
    thetas: Matrix
    """Where to evaluate, one row a suffix."""

    def __call__(self, part: BanditLog, first: int) -> list[SuffixSums | None]:
        """What each suffix has in the part that begins at round `first`; None where it has no round there."""
        sizes, d = part.n_arms, part.n_features
        choices, chance = (sizes > 1).astype(np.float64), np.log(sizes)
        found: list[SuffixSums | None] = []
        for start, stride, theta in zip(self.starts, self.strides, self.thetas, strict=True):
            begin = max(0, start - first)
            if begin >= part.n_rounds:
                found.append(None)
                continue
            curved = begin + -(first + begin) % stride
            sums = accumulated(
                part, choices, slice(begin, None), Pass(theta=theta, share=FAIR if stride == 1 else None)
            )
            upper = sums.upper
            if stride > 1 and curved < part.n_rounds:
                upper = accumulated(part, choices, slice(curved, None, stride), Pass(theta=theta, share=FAIR)).upper
            elif stride > 1:
                upper = np.zeros((d, d))
            here = SuffixSums(
                loss=sums.loss,
                gradient=sums.gradient,
                n_choices=int(np.count_nonzero(choices[begin:])),
                null_loss=float(chance[begin:].sum()),
                upper=upper,
                n_curved=int(np.count_nonzero(choices[curved::stride])),
            )
            found.append(here)
        return found


def refine_suffixes(
    parts: Parts,
    burn_ins: Index,
    thetas: Matrix,
    *,
    n_rounds: int,
    l2: float,
    tolerance: float,
    progress: Progress | None = None,
) -> tuple[Matrix, Vector]:
    """Theta and mean loss for the suffix after each burn-in, from thetas near them; NaN where it has no choice.

    Newton's method with halved steps where one leads up, for all suffixes at once; from zero where that is nearer. Most
    of a pass is the gradient: the curvature that a step needs is that of some of the `n_rounds`.
    """
    starts, first = np.unique(burn_ins, return_index=True)
    enough = CURVED_ROUNDS_PER_FEATURE * max(1, parts.n_features)
    searches = [
        _Search(start, _odd((n_rounds - start) // enough), np.nan_to_num(thetas[at]), l2)
        for start, at in zip(starts.tolist(), first, strict=True)
    ]
    for _ in range(MAX_PASSES):
        going = [search for search in searches if not search.done]
        if progress is not None:
            progress(len(searches) - len(going), len(searches))
        if not going:
            break
        task = RunPasses(
            tuple(search.start for search in going),
            tuple(search.stride for search in going),
            np.array([search.theta for search in going]),
        )
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

    def __init__(self, start: int, stride: int, theta: Vector, l2: float) -> None:
        self.start, self.stride, self.theta, self.l2 = start, stride, theta, l2
        self.best, self.loss, self.done = np.full_like(theta, np.nan), np.nan, False
        self._here: tuple[Vector, float, float, Vector] | None = None
        self._left: float | None = None

    def step(self, found: SuffixSums | None, tolerance: float) -> None:
        """Go on from what a pass found at `theta`."""
        if found is None or not found.n_choices:
            self.done = True
            return
        theta, n = self.theta, found.n_choices
        loss, gradient = found.loss / n, found.gradient / n + self.l2 * theta
        value = loss + 0.5 * self.l2 * float(theta @ theta)
        if self._here is None and value > found.null_loss / n and theta.any():
            self.theta = np.zeros_like(theta)
            return
        if self._here is not None and self._climbs(value):
            return
        self.best, self.loss = theta, loss
        upper = found.upper / max(1, found.n_curved)
        if self.stride > 1 and gradient[np.diag(upper) == 0].any():
            # A feature so rare that none of these rounds has it.
            self.stride = 1
            return
        step = -inverse(upper + np.triu(upper, 1).T + self.l2 * np.eye(len(theta))) @ gradient
        slope = float(gradient @ step)
        left = max(max(0.0, -slope) ** 0.5, largest(gradient))
        rate = None if self._left is None else max(left / self._left, 0.0 if self.stride == 1 else _LEAVES)
        self._left = left
        if rate is not None and rate > _SLOW and self.stride > 1:
            self._look_closer()
        self._here, self.theta = (theta, value, slope, step), theta + step
        self.done = left <= tolerance
        if not self.done and rate is not None and CAUTION * rate * left <= tolerance:
            # One more step ends there, and need not be evaluated.
            self.best, self.done = self.theta, True
            self.loss = value + slope / 2 - 0.5 * self.l2 * float(self.theta @ self.theta)

    def _climbs(self, value: float) -> bool:
        """Whether the last step led up: then its start is looked at more closely or, if it was, half of it tried."""
        assert self._here is not None
        theta, before, slope, step = self._here
        if falls(value, before, slope) or value <= before + rounding(before):
            return False
        # What a step left that was too long says nothing of the next.
        self._left = None
        if self.stride > 1:
            self._look_closer()
            self.theta = theta
            return True
        self._here = theta, before, slope / 2, step / 2
        self.theta = theta + step / 2
        return True

    def _look_closer(self) -> None:
        self.stride, self._left = _odd(self.stride // _CLOSER), None


def _odd(stride: int) -> int:
    """The next odd stride: what comes in every second round is not missed."""
    return stride | 1


def _joined(before: list[SuffixSums | None], later: list[SuffixSums | None]) -> list[SuffixSums | None]:
    return [two if one is None else one if two is None else one + two for one, two in zip(before, later, strict=True)]
