"""Degrade a log in the ways that real ones are: the truth stays beside what an observer may see."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_number, as_whole
from onlooker.base.errors import InputError
from onlooker.base.types import Index, Matrix, Vector
from onlooker.logs.log import BanditLog, as_log
from onlooker.logs.missing import draw_missing
from onlooker.logs.sampling import sample_offers


@dataclass(frozen=True, kw_only=True, eq=False)
class Masked:
    """What is left of a log, and what it was."""

    log: BanditLog
    """What an observer may see; where features are hidden, only the rounds that are complete."""
    truth: BanditLog
    """The log as it was, all rounds."""
    rounds: Index
    """Which rounds of it were not lost."""
    gaps: Index
    """How many rounds were lost before each of these."""
    round_probability: Vector | None = None
    """With what probability each of these was kept, where rounds are lost by their pick."""
    features: Matrix | None = None
    """Features of these rounds with NaN where they are hidden, where some are."""

    def draws(self, n: int = 10, seed: int = 0) -> list[BanditLog]:
        """Logs with the hidden features drawn, for `fit_draws`."""
        if self.features is None:
            raise InputError("no feature is hidden: pass hide= to Mask")
        kept = self.truth[self.rounds]
        return draw_missing(self.features, kept.offsets, kept.chosen, n=n, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Mask:
    """What is lost of a log; called with a log and a seed it gives what is left. The same seed gives the same.

    Parameters
    ----------
    groups
        Picks are known only to one of so many groups of arms, alike in size and drawn again in every round; or, one
        group per position, as a sequence.
    seen
        Share of the picks that are known all the same, with `groups`.
    keep_offers
        Offers that are kept in a round, the pick among them.
    favour
        Weights, one per feature: arms are kept more often by `exp(features @ favour)`; evenly without.
    lose
        Share of the rounds that are lost.
    stretches
        Whether they are lost in stretches of this many rounds; 1 loses each by itself.
    lose_by
        Weights, one per feature: rounds are lost by their pick, those with small `features @ lose_by` more often.
    hide
        Share of the rows in which features are missing, by the place of the feature; more often where the other
        features are large, so that it is not completely at random.

    Examples
    --------
    >>> from onlooker.simulation.environment import Environment
    >>> from onlooker.simulation.learners import LinUCB
    >>> from onlooker.simulation.play import simulate
    >>> log = simulate(Environment(4, 9), LinUCB(), n_rounds=500).log
    >>> Mask(groups=3)(log, seed=1).log
    BanditLog(500 rounds, 9 arms, 4 features, float32, 500 picks known to a set)
    >>> Mask(lose=0.5)(log, seed=1).log.n_rounds < 300
    True
    """

    groups: int | Sequence[int] | None = None
    seen: float = 0.0
    keep_offers: int | None = None
    favour: ArrayLike | None = None
    lose: float = 0.0
    stretches: int = 1
    lose_by: ArrayLike | None = None
    hide: dict[int, float] | None = None

    def __call__(self, log: BanditLog, seed: int = 0) -> Masked:
        """Degrade a log."""
        truth = as_log(log, "Mask")
        if truth.partial:
            raise InputError("the log is known only in part already: mask a whole one")
        lost, at, kept, hidden = np.random.SeedSequence(as_whole(seed, "seed")).spawn(4)
        rounds, chances = self._rounds(truth, np.random.default_rng(lost))
        left = truth[rounds]
        features = None
        if self.hide:
            features = self._hidden(left, np.random.default_rng(hidden))
            complete = ~np.logical_or.reduceat(np.isnan(features).any(axis=1), left.offsets[:-1])
            left = left[complete]
        if self.keep_offers is not None and left.n_rounds:
            weights = None if self.favour is None else np.exp(_scores(left, self.favour, "favour"))
            draw = int(np.random.default_rng(kept).integers(2**31))
            left = sample_offers(left, self.keep_offers, seed=draw, weights=weights)
        if self.groups is not None and left.n_rounds:
            left = self._grouped(left, np.random.default_rng(at))
        return Masked(
            log=left,
            truth=truth,
            rounds=rounds,
            gaps=np.diff(rounds, prepend=-1) - 1,
            round_probability=chances,
            features=features,
        )

    def _rounds(self, log: BanditLog, rng: np.random.Generator) -> tuple[Index, Vector | None]:
        """Which rounds are kept, and with what probability where that depends on the pick."""
        n, share = log.n_rounds, as_number(self.lose, "lose", least=0.0, most=1.0)
        if share == 0.0:
            return np.arange(n), None
        if self.lose_by is not None:
            scores = _scores(log, self.lose_by, "lose_by")[log.chosen_rows]
            chances = _kept_by(scores, 1.0 - share)
            kept = np.flatnonzero(rng.random(n) < chances)
            found: Vector | None = chances[kept]
        else:
            length = as_whole(self.stretches, "stretches", least=1)
            blocks = rng.random(-(-n // length)) >= share
            kept, found = np.flatnonzero(np.repeat(blocks, length)[:n]), None
        if not len(kept):
            raise InputError(f"lose={share:g} leaves no round of {n}: lose fewer")
        return kept, found

    def _grouped(self, log: BanditLog, rng: np.random.Generator) -> BanditLog:
        """The log with picks known to the group that they are in."""
        places = np.arange(len(log.features)) - np.repeat(log.offsets[:-1], log.n_arms)
        if isinstance(self.groups, int):
            many = as_whole(self.groups, "groups", least=1)
            # In random order, then dealt out in turn: groups are alike in size.
            order = np.lexsort((rng.random(len(places)), np.repeat(np.arange(log.n_rounds), log.n_arms)))
            ranks = np.empty(len(places), dtype=np.int64)
            ranks[order] = places
            group = ranks % many
        else:
            given = np.asarray(self.groups)
            if log.n_arms.max() > len(given):
                raise InputError(f"groups has {len(given)} positions, but a round offers {int(log.n_arms.max())} arms")
            group = given[places]
        possible = group == np.repeat(group[log.chosen_rows], log.n_arms)
        known = rng.random(log.n_rounds) < as_number(self.seen, "seen", least=0.0, most=1.0)
        possible[np.repeat(known, log.n_arms)] = False
        possible[log.chosen_rows] = True
        return BanditLog(
            log.features,
            log.offsets,
            None,
            feature_names=log.feature_names,
            categories=log.categories,
            possible=possible,
            offer_probability=log.offer_probability,
        )

    def _hidden(self, log: BanditLog, rng: np.random.Generator) -> Matrix:
        """Features with NaN where they are hidden: more often where the other features are large."""
        rows = np.array(log.dense, dtype=np.float64)
        found = rows.copy()
        for place, share in (self.hide or {}).items():
            if not 0 <= place < rows.shape[1]:
                raise InputError(f"hide names feature {place}, but there are {rows.shape[1]}: count from 0")
            others = np.delete(rows, place, axis=1).sum(axis=1)
            chances = 1.0 - _kept_by(-others, 1.0 - as_number(share, "hide", least=0.0, most=1.0))
            found[rng.random(len(rows)) < chances, place] = np.nan
        return found


def _scores(log: BanditLog, weights: ArrayLike, name: str) -> Vector:
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (log.n_features,):
        raise InputError(f"{name} has shape {values.shape}: pass one weight for each of the {log.n_features} features")
    return np.asarray(log.dense @ values, dtype=np.float64)


def _kept_by(scores: Vector, share: float) -> Vector:
    """Probabilities that rise with the scores, 0.1 to 0.9 of the way for most, and are `share` on average."""
    unit = (scores - scores.mean()) / max(float(scores.std()), 1e-300)
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if np.mean(1 / (1 + np.exp(-(1.5 * unit + middle)))) < share:
            low = middle
        else:
            high = middle
    return np.asarray(np.clip(1 / (1 + np.exp(-(1.5 * unit + high))), 0.02, None))
