"""Reliability of propensities: calibration, and overlap with other policies."""

from __future__ import annotations

import itertools
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onlooker.base.errors import InputError
from onlooker.base.text import text_table
from onlooker.base.types import Vector
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog

EDGES = (0.0, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 1.0)
"""Bins of the predicted probability: narrow at both ends, where ratios matter."""
TINY = 0.1
"""A propensity below this part of a uniform pick's is called tiny."""
SURE = 0.06
"""Predicted share of picks other than the likeliest arm, below which a learner may be deterministic..."""
FLOOR = 0.02
"""...if the least likely arm also has less than this part of a uniform pick's probability, in most rounds."""
THIN = 0.01
"""An effective sample below this part of the rounds is too thin to rely on."""
FEW = 30
"""And so is one of fewer rounds than this."""
ASTRAY = 0.05
"""Part of the picks by which those at a position may differ from what was predicted..."""
CHANCE = 1e-6
"""...unless chance makes such a difference, anywhere, with more than this probability."""


@dataclass(frozen=True, kw_only=True)
class CalibrationBin:
    """Arms whose predicted probability lies between two values."""

    low: float
    high: float
    count: int
    """How many."""
    predicted: float
    """Their mean predicted probability."""
    observed: float
    """Share of them that was picked."""
    error: float
    """Standard error of that share, if the predictions are right."""


@dataclass(frozen=True, kw_only=True, repr=False)
class Calibration:
    """Predicted probabilities against picks; printing it shows the curves.

    Picks alone show whether predictions are right on average among arms that are predicted alike. They do not show
    whether each one is.
    """

    arms: tuple[CalibrationBin, ...]
    """Of all offered arms: with what share they were picked."""
    top: tuple[CalibrationBin, ...]
    """Of the likeliest arm of each round."""
    misfit: float
    """Mean distance between predicted and observed share of the likeliest arm, less what chance explains."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    def plot(self, path: str | None = None) -> Any:
        """Draw both curves. Returns the charts as data; with `path`, also writes them to a file (.png or .svg)."""
        # Imported by name: charts belong to a higher layer.
        from importlib import import_module

        return import_module("onlooker.report.plots.results").plot_calibration(self, path)

    def __repr__(self) -> str:
        rows = [["predicted", "arms", "mean", "picked", "likeliest arm", "mean", "picked"]]
        tops = {one.low: one for one in self.top}
        for one in self.arms:
            top = tops.get(one.low)
            likeliest = ["", "", ""] if top is None else [str(top.count), f"{top.predicted:.3f}", f"{top.observed:.3f}"]
            share = f"{one.low:g} to {one.high:g}"
            rows.append([share, str(one.count), f"{one.predicted:.4f}", f"{one.observed:.4f}", *likeliest])
        return "\n".join(
            [*text_table(rows, "< >10 >9 >9  >14 >8 >8"), f"mean distance, likeliest arm: {self.misfit:.3f}"]
        )


def calibration(log: BanditLog, values: Vector) -> Calibration:
    """Compare predicted probabilities, one per row, with the picks; rounds with a single arm are not informative.

    Of a pick that is known only to a set, each arm of the set counts by what was predicted of it: only the sets are
    then held against the predictions.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.zeros((100, 2, 1)), chosen=np.arange(100) % 10 // 9)
    >>> found = calibration(log, np.tile([0.8, 0.2], 100))
    >>> found.top[0].predicted, found.top[0].observed, round(found.misfit, 2)
    (0.8, 0.9, 0.07)
    """
    choices = log.n_arms > 1
    picked = log.expected_picks(values)
    rows = np.repeat(choices, log.n_arms)
    best = (log.offsets[:-1] + ragged.argmax(values, log.offsets))[choices] if log.n_rounds else np.empty(0, np.int64)
    top = _bins(values[best], picked[best])
    misfit = sum(
        max(0.0, abs(one.predicted - one.observed) - np.sqrt(2 / np.pi) * one.error) * one.count for one in top
    )
    total = max(sum(one.count for one in top), 1)
    return Calibration(arms=_bins(values[rows], picked[rows]), top=top, misfit=float(misfit) / total)


def _bins(predicted: Vector, picked: Vector) -> tuple[CalibrationBin, ...]:
    place = np.clip(np.searchsorted(EDGES, predicted, side="right") - 1, 0, len(EDGES) - 2)
    found = []
    for b, (low, high) in enumerate(itertools.pairwise(EDGES)):
        inside = place == b
        count = int(np.count_nonzero(inside))
        if count:
            mean, variance = float(predicted[inside].mean()), float((predicted * (1 - predicted))[inside].mean())
            found.append(
                CalibrationBin(
                    low=low,
                    high=high,
                    count=count,
                    predicted=round(mean, 12),
                    observed=float(picked[inside].mean()),
                    error=float(np.sqrt(variance / count)),
                )
            )
    return tuple(found)


@dataclass(frozen=True, kw_only=True, repr=False)
class Overlap:
    """How much the log reveals about another policy; its `repr` is a sentence."""

    n_rounds: int
    """Rounds with a choice."""
    effective_sample_size: float
    """Rounds that an estimate for the other policy rests on: squared sum of the weights over the sum of squares."""
    largest_weight: float
    """Of a round, as a share of all weights."""
    tiny_share: float
    """Share of rounds whose pick had a tiny propensity: less than a tenth of a uniform pick's."""
    deterministic: bool
    """Whether the learner looks deterministic: its propensities then reflect uncertainty about it, not randomness."""
    target: str
    """Description of the other policy."""
    astray: str = ""
    """How picks follow their positions against the propensities; empty where they do not, clearly and by much."""

    @property
    def sentence(self) -> str:
        """The interpretation, as a sentence."""
        share = self.effective_sample_size / max(self.n_rounds, 1)
        size = (
            f"for {self.target}, {self.n_rounds} rounds count as {self.effective_sample_size:.0f} ({share:.1%}); one "
            f"round has {self.largest_weight:.1%} of all weight; {self.tiny_share:.1%} of picks had a tiny propensity"
        )
        if self.deterministic:
            size = f"the learner looks deterministic, so the log does not support off-policy evaluation; {size}"
        return f"{self.astray}, so the propensities are wrong; {size}" if self.astray else size

    @property
    def is_unreliable(self) -> bool:
        """Whether estimates that divide by the propensities are not reliable."""
        return self.deterministic or self.is_thin or bool(self.astray)

    @property
    def is_thin(self) -> bool:
        """Whether an estimate would rest on too few rounds."""
        return self.effective_sample_size < max(FEW, THIN * self.n_rounds)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "sentence": self.sentence}

    def __repr__(self) -> str:
        return self.sentence


def overlap(log: BanditLog, values: Vector, target: ArrayLike | None = None) -> Overlap:
    """Measure how far propensities, one per row, cover a policy that picks with other probabilities; None is uniform.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.zeros((100, 2, 1)), chosen=np.arange(100) % 10 // 9)
    >>> found = overlap(log, np.tile([0.9, 0.1], 100))
    >>> round(found.effective_sample_size), found.deterministic
    (36, False)
    """
    wanted = _target(log, target)
    choices = np.flatnonzero(log.n_arms > 1)
    chances, n = log.of_picks(values)[choices], len(choices)
    weights = log.of_picks(wanted)[choices] / chances
    total, squares = float(weights.sum()), float((weights**2).sum())
    uniform = 1.0 / log.n_arms[choices]
    return Overlap(
        n_rounds=n,
        effective_sample_size=total**2 / squares if squares else 0.0,
        largest_weight=float(weights.max() / total) if total else 0.0,
        tiny_share=float(np.mean(chances < TINY * uniform)) if n else 0.0,
        deterministic=_looks_deterministic(log, values, choices),
        target="a policy that picks at random" if target is None else "the policy given",
        astray=_astray(log, values, choices) if log.possible is None else "",
    )


def _target(log: BanditLog, target: ArrayLike | None) -> Vector:
    if target is None:
        return np.repeat(1.0 / log.n_arms, log.n_arms)
    wanted = np.asarray(target, dtype=np.float64)
    if wanted.shape != (int(log.offsets[-1]),):
        raise InputError(
            f"target has shape {wanted.shape}: pass one probability per row, {int(log.offsets[-1])} in all"
        )
    if not ((wanted >= 0) & (wanted <= 1)).all():
        raise InputError("target is not made of probabilities: pass one between 0 and 1 per row")
    return wanted


def _looks_deterministic(log: BanditLog, values: Vector, choices: NDArray[np.int64]) -> bool:
    """By the second half of the rounds, when whoever observes has learned something."""
    if not len(choices):
        return False
    late = choices[len(choices) // 2 :]
    starts = log.offsets[:-1]
    top, least = (function.reduceat(values, starts)[late] for function in (np.maximum, np.minimum))
    return bool(np.mean(1.0 - top) < SURE and np.median(least * log.n_arms[late]) < FLOOR)


def _astray(log: BanditLog, values: Vector, choices: NDArray[np.int64]) -> str:
    """Compare picks at each position, and at each distance from the pick before, with what was predicted of them.

    Predictions one step ahead make each difference a martingale, and Freedman's bound holds for it.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.zeros((200, 4, 1)), chosen=np.arange(200) % 4)
    >>> _astray(log, np.full(800, 0.25), np.arange(200))
    '100% of the picks are 1 position after the pick before, counted in a circle, where 25% were predicted'
    >>> _astray(log[::4], np.full(200, 0.25), np.arange(50))
    '100% of the picks are at position 0, where 25% were predicted'
    """
    sizes = log.n_arms
    if not len(choices):
        return ""
    place = ragged.positions(log.offsets)
    before = np.repeat(np.append(0, log.chosen[:-1]), sizes)
    known = np.append(False, np.diff(sizes) == 0) & (sizes > 1)
    ways = (
        (place, sizes > 1, lambda at: f"at position {at}"),
        ((place - before) % np.repeat(sizes, sizes), known, _after),
    )
    for labels, rounds, words in ways:
        rows = np.repeat(rounds, sizes)
        count = int(np.count_nonzero(rounds))
        picked = np.bincount(labels[log.chosen_rows][rounds], minlength=1)
        expected = np.bincount(labels[rows], values[rows], len(picked))
        picked = np.pad(picked, (0, len(expected) - len(picked)))
        variance = np.bincount(labels[rows], (values * (1 - values))[rows], len(picked))
        gap = np.abs(picked - expected)
        clear = gap**2 > 2 * (variance + gap / 3) * np.log(2 * len(picked) / CHANCE)
        far = np.flatnonzero(clear & (gap > ASTRAY * count))
        if len(far):
            top = int(far[gap[far].argmax()])
            said = f"{picked[top] / count:.0%} of the picks are {words(top)}"
            return f"{said}, where {expected[top] / count:.0%} were predicted"
    return ""


def _after(distance: int) -> str:
    if not distance:
        return "at the position of the pick before"
    return f"{distance} position{'s' if distance > 1 else ''} after the pick before, counted in a circle"
