"""With what probability a learner picked each arm, from its picks alone: for off-policy evaluation of logs without."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_level, as_whole
from onlooker.base.errors import InputError, LowOverlapWarning, warn
from onlooker.base.notebook import Pictured, as_frame
from onlooker.base.types import Matrix, Progress, Vector
from onlooker.evaluation.metrics import information_share
from onlooker.evaluation.overlap import Calibration, Overlap, calibration, overlap
from onlooker.logs.log import BanditLog, as_log
from onlooker.observers import DynamicImitation, Observer, SuffixImitation, TrackingObserver
from onlooker.observers.ahead import all_alike, mixed, recalibrated
from onlooker.observers.dynamic.draws import drawn_probabilities
from onlooker.observers.dynamic.follower import Bank

AUTO = (SuffixImitation, DynamicImitation, TrackingObserver)
"""Observers that `"auto"` combines."""
WIDE, WIDEST = 30, 300
"""Features from which on tracking is tried on some rounds first, as it may take minutes; and beyond which it is not."""
TRIAL = 1000
"""Number of these rounds."""
BEHIND = 100.0
"""Log-probability by which it may be behind the best of the others on them."""
TOGETHER, RANDOM = "all together", "random guessing"
"""What else counts in the mixture: the observers' predictions as features of a choice model, and no prediction."""
FAINTEST = -15.0
"""Log-probabilities count as this at least where they are features."""
DRAWS = 200
"""Number of draws behind an interval."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Propensities(Pictured):
    """How a learner picked in every round of a log; printing it shows the main figures.

    Examples
    --------
    >>> from onlooker import Environment, EpsilonGreedy, simulate
    >>> log = simulate(Environment(5, 10), EpsilonGreedy(0.2), n_rounds=1500).log
    >>> found = propensities(log)
    >>> found.values.shape == (len(log.features),), found.chosen.shape, bool(found.values.min() > 0)
    (True, (1500,), True)
    """

    log: BanditLog
    values: Vector
    """Probability of every offered arm, one per row of the log: above 0, and 1 in sum over a round.

    Each is from the picks before its round."""
    observer: Observer
    """The observer that predicted best, fitted to the log."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """Information share one step ahead of each observer."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Weight of each observer at the end of the log."""
    predicted: Mapping[str, Vector] = field(default_factory=dict)
    """The predictions of each, one per row as `values`."""

    @property
    def chosen(self) -> Vector:
        """Probability of the pick of every round, shape (N,); of a set that holds it, the sum over the set."""
        return self.log.of_picks(self.values)

    @property
    def share(self) -> float:
        """Information share one step ahead: 0 for random guessing, 1 if every pick was predicted with certainty.

        No truth is needed for it. A learner that explores cannot reach 1, so compare it between observers only.
        """
        return information_share(self.log, self.values)

    def calibration(self) -> Calibration:
        """Predicted against observed shares of picks, of all arms and of the likeliest one."""
        return calibration(self.log, self.values)

    def overlap(self, target: ArrayLike | None = None) -> Overlap:
        """How many rounds count for another policy, given by its probabilities, one per row; by default a uniform one.

        Warns where the learner looks deterministic, too few rounds count, or picks follow their positions against what
        was predicted.
        """
        found = overlap(self.log, self.values, target)
        if found.is_unreliable:
            warn(f"{found.sentence}. Estimates that divide by propensities are not reliable here", LowOverlapWarning)
        return found

    def draws(self, n: int = 100, seed: int = 0) -> Matrix:
        """Draws of `values`, shape (n, rows): their posterior uncertainty given the picks.

        The weights of `DynamicImitation` are drawn from what is believed of them before each round, and the
        probabilities that they give are moved to `values` on average. Repeat an off-policy estimate with each draw, and
        the spread of the results is the part of its error that comes from not knowing the propensities. A wrong model
        of the learner is not covered: unlogged features, scores that are not linear, two policies at once.
        """
        parts = list(self._drawn(as_whole(n, "n", least=1), as_whole(seed, "seed")))
        return np.concatenate([np.empty((n, 0)), *parts], axis=1)

    def interval(self, level: float = 0.9, *, seed: int = 0) -> tuple[Vector, Vector]:
        """Lower and upper ends of intervals for `values`, from draws; see `draws` for what they do not cover."""
        tail = 50.0 * (1.0 - as_level(level))
        parts = [np.percentile(part, [tail, 100.0 - tail], axis=0) for part in self._drawn(DRAWS, seed)]
        low, high = np.concatenate([np.empty((2, 0)), *parts], axis=1)
        return low, high

    def _drawn(self, n: int, seed: int) -> Iterator[Matrix]:
        done, start = 0, 0
        for part in drawn_probabilities(self.log, n, seed):
            rows = slice(done, done + part.shape[1])
            stop = int(np.searchsorted(self.log.offsets, rows.stop))
            tilted = self.values[rows] * part / part.mean(axis=0)
            starts = self.log.offsets[start:stop] - done
            yield tilted / np.repeat(np.add.reduceat(tilted, starts, axis=1), self.log.n_arms[start:stop], axis=1)
            done, start = rows.stop, stop

    def to_frame(self) -> Any:
        """One row per offered arm: round, arm, chosen and propensity; a pandas table, or Arrow's without pandas.

        Of a pick that is known only to a set, `chosen` has the probability of each arm of the set.
        """
        import pyarrow as pa

        log = self.log
        rounds = np.arange(log.n_rounds) if log.round_ids is None else log.round_ids
        arms = np.arange(len(self.values)) - np.repeat(log.offsets[:-1], log.n_arms)
        picked = log.expected_picks(self.values)
        picked = picked.astype(np.int8) if log.possible is None else picked
        table = pa.table(
            {
                "round": np.repeat(rounds, log.n_arms),
                "arm": arms if log.arm_ids is None else log.arm_ids,
                "chosen": picked,
                "propensity": self.values,
            }
        )
        return as_frame(table)

    def to_dict(self) -> dict[str, Any]:
        """The main figures as plain values, for JSON."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LowOverlapWarning)
            covered = self.overlap()
        return {
            "rounds": self.log.n_rounds,
            "observer": type(self.observer).__name__,
            "share": self.share,
            "shares": dict(self.shares),
            "weights": dict(self.weights),
            "calibration": self.calibration().to_dict(),
            "overlap": covered.to_dict(),
        }

    def __repr__(self) -> str:
        name = type(self.observer).__name__
        return (
            f"Propensities({self.log.n_rounds} rounds, best predicted by {name}, information share one step ahead "
            f"{self.share:.1%}, misfit of the likeliest arm {self.calibration().misfit:.3f})"
        )


def propensities(
    log: BanditLog, observer: str | Observer = "auto", *, progress: Progress | None = None
) -> Propensities:
    """Estimate the probability with which the learner picked each arm of each round, from the picks before it.

    `"auto"` combines suffix imitation, tracking and dynamic imitation. Each counts by how well it predicted the picks
    so far, and so does a choice model whose features are their predictions. An observer that cannot work on the log is
    left out; if none can, all arms are alike. Beyond 30 features tracking is left out if it is far behind after 1,000
    rounds, beyond 300 always. Where picks are known only to a set, values are of single arms, and observers that follow
    the learner see picks that were drawn within the sets with the help of later rounds too. Or pass an observer: one
    that is not fitted is fitted to the log.
    """
    if not as_log(log, "propensities").n_rounds:
        raise InputError("the log has no rounds: there is nothing to say of them")
    if log.n_sets and not log.informative.any():
        raise InputError("every offered arm may have been the pick in all rounds: there is nothing to say of them")
    if isinstance(observer, Observer):
        return _of_one(log, observer)
    if observer != "auto":
        raise InputError(f"observer is {observer!r}: use 'auto', or pass an observer such as DynamicImitation()")
    found: dict[str, Vector] = {}
    kinds = {kind.__name__: kind for kind in AUTO}
    for done, (name, kind) in enumerate(kinds.items(), 1):
        if kind is not TrackingObserver or _is_worth_tracking(log, found):
            values = predicted_ahead(kind(), log)
            if values is not None:
                found[name] = values
        if progress is not None:
            progress(done, len(kinds) + 1)
    shares = {name: information_share(log, values) for name, values in found.items()}
    best = _best(log, found)
    if len(found) > 1 and log.possible is None:
        found[TOGETHER] = _together(log, list(found.values()))
    found[RANDOM] = all_alike(log)
    values, (weights, _) = mixed(log, list(found.values()))
    if progress is not None:
        progress(len(kinds) + 1, len(kinds) + 1)
    return Propensities(
        log=log,
        values=_whole(log, recalibrated(log, values)),
        observer=_fitted(kinds[best](), log),
        shares=shares,
        weights=dict(zip(found, weights.tolist(), strict=True)),
        predicted=found,
    )


def predicted_ahead(observer: Observer, log: BanditLog) -> Vector | None:
    """Predictions of an observer for every round from the picks before it; None if it cannot work on this log."""
    with warnings.catch_warnings():
        # These warnings are about fits to parts of the log; a fit to the whole log gives its own.
        warnings.simplefilter("ignore")
        try:
            return observer.predicted_ahead(log)
        except InputError:
            return None


def _is_worth_tracking(log: BanditLog, others: Mapping[str, Vector]) -> bool:
    if log.n_features <= WIDE or log.n_rounds <= 2 * TRIAL:
        return log.n_features <= WIDEST
    first = log[:TRIAL]
    tried = None if log.n_features > WIDEST else predicted_ahead(TrackingObserver(), first)
    if tried is None:
        return False
    best = max((np.log(first.of_picks(values)).sum() for values in others.values()), default=-np.inf)
    return bool(np.log(first.of_picks(tried)).sum() > best - BEHIND)


def _of_one(log: BanditLog, observer: Observer) -> Propensities:
    if not hasattr(observer, "policy_"):
        observer = type(observer)(**observer.get_params(deep=False)).fit(log)
    values = _whole(log, observer.propensities(log))
    name = type(observer).__name__
    return Propensities(
        log=log,
        values=values,
        observer=observer,
        shares={name: information_share(log, values)},
        weights={name: 1.0},
        predicted={name: values},
    )


def _best(log: BanditLog, found: Mapping[str, Vector]) -> str:
    """The observer that predicted the second half of the log best: some start later than others."""
    late = slice(log.n_rounds // 2, None)
    return max(
        found, key=lambda name: float(np.log(log.of_picks(found[name])[late]).sum()), default=DynamicImitation.__name__
    )


def _together(log: BanditLog, found: list[Vector]) -> Vector:
    """Predict by a choice model with weights that walk, whose features are what the observers predicted.

    Their sharpness, their shares of random picks and what one knows beyond the others are learned from earlier picks.
    How far an arm is behind the likeliest one counts by its logarithm too: some learners give poor arms more than a
    softmax does, as SquareCB.
    """
    logs = np.maximum(np.log(np.column_stack(found)), FAINTEST)
    behind = np.repeat(np.maximum.reduceat(logs, log.offsets[:-1], axis=0), log.n_arms, axis=0) - logs
    features = np.column_stack([logs, -np.log1p(behind)])
    values = np.empty(len(logs))
    bank = Bank.start(np.ones(features.shape[1]))
    bank.follow(BanditLog(features, log.offsets, log.chosen), probabilities=values)
    return values


def _whole(log: BanditLog, values: Vector) -> Vector:
    """Normalise to sum 1 over every round, against rounding."""
    whole: Vector = values / np.repeat(np.add.reduceat(values, log.offsets[:-1]), log.n_arms)
    return whole


def _fitted(observer: Observer, log: BanditLog) -> Observer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return observer.fit(log)
        except InputError:
            return observer
