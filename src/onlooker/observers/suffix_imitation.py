"""Two-phase suffix imitation: discard the burn-in, imitate the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_level, as_number, as_whole
from onlooker.base.defaults import BURN_IN, L2
from onlooker.base.errors import ConvergenceWarning, InputError, OnlookerWarning, PenaltyDominatesWarning
from onlooker.base.memory_limit import FITTING
from onlooker.base.numerics import normal_reach
from onlooker.base.types import Features, Matrix, Progress, Vector
from onlooker.imitation.burn_in import BurnIn, LengthRule, as_burn_in, estimate, suffix_objective, suffix_start
from onlooker.imitation.choice_model import (
    LINEAR,
    Band,
    Basis,
    FreeScore,
    Linear,
    LinearBasis,
    ScoreModel,
    as_score,
    pick_likelihood,
)
from onlooker.imitation.fit_warnings import check_fit, check_large_fit, enough, likelihood_ratio, shrinkage
from onlooker.imitation.objective import CurvedPoint, Objective
from onlooker.imitation.scores.additive import Additive
from onlooker.imitation.scores.choice import ScoreChoice, choose_score
from onlooker.imitation.scores.products import ProductsPolicy
from onlooker.imitation.softmax import SoftmaxObjective, as_weights, not_whole
from onlooker.imitation.zero_one import fewest_misses
from onlooker.logs import ragged
from onlooker.logs.effects import Effect, as_curve, grid
from onlooker.logs.layouts import MOST_WEIGHTS
from onlooker.logs.log import BanditLog, as_log, check_room, feature_labels
from onlooker.logs.parts import Parts
from onlooker.logs.policy import LinearPolicy, feature_place
from onlooker.observers.base import Observer
from onlooker.observers.summaries import NO_INTERVALS, Summary, coefficients

RANGED = 20_000
"""Rows, evenly spread over the log, that say over which range an effect is drawn: all of a long log
take as long as its fit."""


class SuffixImitation(Observer):
    """The paper's observer: discard a burn-in, fit a linear policy to the picks after it.

    A coefficient is the change in log-odds of a pick for one unit of its feature. The learner's own parameter is on
    another scale, so compare directions. Intervals are for what imitation would find in endlessly many rounds like
    those imitated: they know nothing of a learner that was still wrong, nor that `"auto"` chose the rounds.

    Parameters
    ----------
    burn_in
        Where to start: `"auto"` (held-out, `HeldOut`), `"rule"` (N^0.9, the paper's), `"naive"` (keep all), a number of
        rounds, a fraction below 1, or any object with `start(log) -> int`, such as `PowerRule(0.8)`.
    l2
        Penalty on the mean loss, `l2/2 |theta|^2`. The paper's is 1e-4; 0 gives plain maximum likelihood.
    loss
        `"softmax"`: the conditional softmax loss. `"zero_one"`: the number of picks missed, the paper's algorithm 1; it
        starts from the softmax's theta and never ends above it. It identifies theta's direction only, and has no
        intervals; theta is given the length at which scores spread within rounds as the softmax's do, for
        `predict_proba`.
    covariance
        `"sandwich"`: robust, allows for dependence between neighbouring rounds, and for few rounds that decide.
        `"model"`: trusts the softmax model.
    lags
        How many neighbours the sandwich allows for; None takes Newey and West's rule, 0 treats rounds as independent.
    seed
        Of the search for the smallest 0-1 loss: same seed, same answer.
    score
        How features become an arm's score: `Linear()`, `Additive()` (smooth curves), `Products()` (of all pairs of
        features), `Neural()` (a small network), `Boosted()` (trees), the name of one, or `"auto"`: the simplest that
        predicts held-out rounds about as well as the best. Kept as `score_model`, since `score` is a method.

    Attributes
    ----------
    policy_, theta_
        What was recovered; only a linear policy has `theta_`.
    burn_in_
        Rounds of the log that were discarded.
    loss_
        Mean loss on the suffix, without the penalty; of the 0-1 loss, the part of the weight that is missed.
    n_iter_
        Passes over the suffix that the solver made, or that the search for the smallest 0-1 loss did.
    n_rounds_
        Rounds with a choice that were imitated, each as often as its weight says.
    agreement_
        Fraction of them where the policy picks what was picked.
    shrinkage_
        By about how much regularisation shrinks the weights, between 0 and 1; NaN with the 0-1 loss.
    rank_
        How many directions of theta the rounds identify: d, unless features are constant or collinear.
    log_likelihood_, null_log_likelihood_
        Of their picks, under `theta_` and under uniform choice.
    covariance_
        Of `theta_`, shape (d, d); NaN for coefficients that are not identified, as where rounds are too few or picks
        are separable. With
        weights for each arm it is that of the differences to the mean over the arms. None with more than 3,000 weights
        of rows that are not dense (`NoIntervalsWarning`). All NaN
        with the 0-1 loss, whose minimiser is not even roughly normal: it converges at the cube root of the rounds.
    score_choice_
        What `score="auto"` compared and took; None where the score was given.
    warnings_
        What to know before using the answer, as given by `warnings` too.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(2000, 5, 3))
    >>> noise = np.random.default_rng(1).gumbel(size=(2000, 5))
    >>> log = BanditLog.from_dense(X, chosen=(X @ [1.0, -1.0, 0.0] + noise).argmax(axis=1))
    >>> observer = SuffixImitation(burn_in="naive").fit(log)
    >>> bool(np.allclose(observer.theta_, [1.0, -1.0, 0.0], atol=0.1))
    True
    >>> observer.score(log) > 0.5
    True
    """

    _stored: ClassVar[Mapping[str, str]] = {"score": "score_model"}

    burn_in_: int
    loss_: float
    n_iter_: int
    n_rounds_: int
    agreement_: float
    shrinkage_: float
    rank_: int
    log_likelihood_: float
    null_log_likelihood_: float
    covariance_: Matrix | None
    score_choice_: ScoreChoice | None
    _labels: tuple[str, ...]
    warnings_: tuple[str, ...]

    def __init__(
        self,
        *,
        burn_in: str | float | BurnIn = BURN_IN,
        l2: float = L2,
        loss: str = "softmax",
        covariance: str = "sandwich",
        lags: int | None = None,
        seed: int = 0,
        score: ScoreModel | FreeScore | str = LINEAR,
    ) -> None:
        self.burn_in = burn_in
        self.l2 = l2
        self.loss = loss
        self.covariance = covariance
        self.lags = lags
        self.seed = seed
        self.score_model = score

    def fit(
        self,
        log: BanditLog | Parts,
        sample_weight: ArrayLike | None = None,
        *,
        round_probability: ArrayLike | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """Recover the policy; `sample_weight` gives one weight per round of the whole log.

        A weight of two counts as two rounds next to each other, a weight of zero as none: theta, both covariances, the
        summary and the warnings are those of the log with its rounds repeated so. Rules, fractions and `"auto"` place
        the burn-in by rounds counted so, and may end it between two of a round's repeats; a number of rounds is a place
        in the log as given, whatever its weights. A burn-in of your own does not see weights and is refused. Weights
        that are no whole numbers need `covariance="model"`: parts of rounds have no neighbours for a sandwich to allow
        for. With the 0-1 loss misses are counted so too, but the search may end at another theta. `progress` is called
        by the search for the smallest 0-1 loss.

        Where rounds were lost by what was picked, as when only some kinds of picks were logged, `round_probability` has
        the probability with which each round of the log was kept: rounds count by its inverse, and the sandwich allows
        for that. Rounds that were lost at random need nothing.

        A log that is not in memory, as `scan_log` gives it, is scanned once for every pass that the solver makes,
        and once more before. All burn-ins are exact but `"auto"` and own ones, which are judged by every so many of its
        rounds, as many as fit into memory.
        """
        self._check_parameters()
        scaled = round_probability is not None
        if self.loss == "zero_one" and isinstance(log, BanditLog) and log.partial:
            raise InputError(
                "loss 'zero_one' needs all picks and offers, and the log knows some only in part: use loss='softmax'"
            )
        if round_probability is not None:
            sample_weight = self._inverse(as_log(log), round_probability, sample_weight)
        counted = sample_weight is not None and not scaled and not isinstance(log, Parts)
        whole = not counted or self._whole(as_log(log).n_rounds, sample_weight)
        if not isinstance(as_score(self.score_model), Linear) and (
            scaled or (isinstance(log, BanditLog) and log.partial)
        ):
            raise InputError(f"score={self.score_model!r} needs all rounds, picks and offers: use score=Linear() here")
        own = log
        if not isinstance(as_score(self.score_model), Linear):
            own = as_log(log, f"score={self.score_model!r}")
        score = self._chosen(own, sample_weight)
        if not isinstance(score, Linear):
            log = as_log(own).written_out()
        if not isinstance(score, Linear) and isinstance(score, FreeScore):
            self._fit_free(score, as_log(log), sample_weight)
            self._remember(own)
            return self
        objective, start, basis = self._prepared(score, log, sample_weight, scaled=scaled)
        if self.loss == "zero_one" and not isinstance(objective, SoftmaxObjective):
            raise InputError("loss 'zero_one' needs the log in memory: read it, or use loss='softmax'")
        fit, at, covariance, band = estimate(objective, basis, self.lags, model=self.covariance == "model" or not whole)
        if isinstance(at, CurvedPoint) and covariance is not None:
            found = check_fit(objective, fit, at.hessian, basis.smooth)
            identified = found.identified & (enough(objective) or basis.smooth is not None)
            for spread in (covariance, *(() if band is None else band[1:])):
                spread[~identified, :] = np.nan
                spread[:, ~identified] = np.nan
            self.shrinkage_ = shrinkage(objective, at, fit, basis.smooth)
        else:
            found = check_large_fit(objective, fit, objective.variances(at.theta))
            self.shrinkage_ = np.nan
            n_weights = objective.n_features
            covariance = np.full((n_weights,) * 2, np.nan) if n_weights <= MOST_WEIGHTS else None

        self._report(np.where(found.constant, 0.0, at.theta), covariance, basis, log, band)
        self.burn_in_ = start
        self.loss_ = at.loss
        self.n_iter_ = fit.n_iter
        self.n_rounds_ = objective.n_rounds
        self.agreement_ = at.agreed / objective.total
        self.rank_ = found.rank
        self.log_likelihood_ = -objective.total * at.loss
        self.null_log_likelihood_ = -objective.total * objective.null_loss
        if self.loss == "zero_one" and isinstance(objective, SoftmaxObjective):
            self._miss_fewest(objective, basis, log, progress)
        self._remember(own)
        self._warn([warning for warning in found.warnings if self._concerns(warning)], stacklevel=2)
        return self

    def summary(self, level: float = 0.95) -> Summary:
        """Coefficients with intervals, fit statistics and warnings; print it, or take `to_dict()`."""
        self._fitted()
        likelihoods = self.log_likelihood_, self.null_log_likelihood_
        ratio, p_value = likelihood_ratio(*likelihoods, self.rank_)
        if self.loss == "zero_one":
            # Of a direction alone there is no likelihood.
            likelihoods, ratio, p_value = (np.nan, np.nan), np.nan, np.nan
        errors = np.full(len(self._weights), np.nan)
        if self.covariance_ is None:
            p_value = np.nan
        else:
            errors = np.sqrt(np.diag(self.covariance_))
        return Summary(
            coefficients=coefficients(self._labels, self._weights, errors, level),
            level=level,
            covariance=self.covariance if self.loss == "softmax" and self.covariance_ is not None else NO_INTERVALS,
            crossing=self._crossing,
            n_rounds=self.n_rounds_,
            burn_in=self.burn_in_,
            log_likelihood=likelihoods[0],
            null_log_likelihood=likelihoods[1],
            likelihood_ratio=ratio,
            p_value=p_value,
            agreement=self.agreement_,
            shrinkage=self.shrinkage_,
            warnings=self.warnings_,
        )

    def effect(self, name: str, x: ArrayLike | None = None, *, level: float = 0.95) -> Effect:
        """What a feature adds to the score, with a pointwise band where there are intervals: see `Effect`.

        At `x`, or over the range that was fitted. Of a feature with products it is what the feature adds where all
        others have their means.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(2000, 5, 1))
        >>> log = BanditLog.from_dense(X, (X[..., 0] + 0.5).argmax(axis=1), feature_names=["speed"])
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):
        ...     SuffixImitation(burn_in="naive").fit(log).effect("speed", [0.0, 1.0]).effect[1] > 0
        np.True_
        """
        policy: Any = self._fitted()
        if not isinstance(policy, (LinearPolicy, ProductsPolicy)) or self._seen is None:
            found: Effect = policy.effect(name, x, level=level)
            return found
        place = feature_place(policy, name)
        low, mean, high, square = (float(one[place]) for one in self._seen)
        points = grid(np.array([low, high])) if x is None else as_curve(x)
        if isinstance(policy, ProductsPolicy):
            turn = policy.turned(place, points, mean, square)
        else:
            turn = np.zeros((len(points), len(policy.theta)))
            turn[:, place] = points - mean
        places = np.flatnonzero(turn.any(axis=0))
        turn = turn[:, places]
        spread = np.full((len(places),) * 2, np.nan)
        if self.covariance_ is not None:
            spread = self.covariance_[np.ix_(places, places)]
        values = turn @ policy.theta[places]
        errors = np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", turn, spread, turn), 0.0))
        band = normal_reach(as_level(level)) * errors
        return Effect(name=name, x=points, effect=values, low=values - band, high=values + band, level=level)

    @property
    def _rule(self) -> BurnIn:
        """The rule that `burn_in` stands for."""
        return as_burn_in(self.burn_in, l2=self.l2)

    def _check_parameters(self) -> None:
        if self.loss not in {"softmax", "zero_one"}:
            raise InputError(f"loss is {self.loss!r}: use 'softmax' or 'zero_one'")
        as_whole(self.seed, "seed")
        as_score(self.score_model)
        if self.covariance not in {"sandwich", "model"}:
            raise InputError(f"covariance is {self.covariance!r}: use 'sandwich' or 'model'")
        as_number(self.l2, "l2", least=0.0)
        if self.lags is not None:
            as_whole(self.lags, "lags")

    def _chosen(self, log: BanditLog | Parts, sample_weight: ArrayLike | None) -> ScoreModel | FreeScore:
        """The score model to fit: the one that was given, or that held-out rounds choose."""
        score = as_score(self.score_model)
        self.score_choice_ = None
        if not isinstance(score, str):
            return score
        weights = None if sample_weight is None else as_weights(sample_weight, as_log(log).n_rounds, "sample_weight")
        self.score_choice_ = choose_score(as_log(log), l2=self.l2, seed=self.seed, weights=weights)
        return self.score_choice_.model

    def _prepared(
        self, score: ScoreModel, log: BanditLog | Parts, sample_weight: ArrayLike | None, *, scaled: bool
    ) -> tuple[Objective, int, Basis]:
        """Objective of the rounds after the burn-in, how many are discarded, and the basis that it is about."""
        if isinstance(score, Linear):
            check_room(log, FITTING)
            found = suffix_objective(log, self._rule, l2=self.l2, sample_weight=sample_weight, scaled=scaled)
            return *found, LinearBasis(self.l2)
        start, weights = self._suffix(score, as_log(log), sample_weight)
        rounds = as_log(log).suffix(start)
        if weights is not None:
            # Knots and penalties are those of rounds that count.
            counted = np.flatnonzero(weights > 0)
            rounds, weights = rounds[counted], weights[counted]
        basis = score.prepared(rounds, l2=self.l2, weights=weights)
        columns = basis.basis(rounds)
        check_room(columns, FITTING)
        return SoftmaxObjective(columns, l2=basis.l2, weights=weights), start, basis

    def _suffix(self, score: ScoreModel, log: BanditLog, sample_weight: ArrayLike | None) -> tuple[int, Vector | None]:
        """Rounds that the burn-in discards, judged by this score where it looks at the picks; weights of the others."""
        if isinstance(self._rule, LengthRule):
            return suffix_start(log, self._rule, sample_weight)
        late = score.prepared(log.suffix(log.n_rounds // 2), l2=self.l2)
        return suffix_start(late.basis(log), as_burn_in(self.burn_in, l2=late.l2), sample_weight)

    def _fit_free(self, score: FreeScore, log: BanditLog, sample_weight: ArrayLike | None) -> None:
        """Fit a score that is not linear in any basis; where the burn-in looks at the picks, additive scores judge."""
        if self.loss != "softmax":
            raise InputError(f"loss is {self.loss!r}, but this score is fitted by its likelihood: use loss='softmax'")
        start, weights = self._suffix(Additive(), log, sample_weight)
        rounds = log.suffix(start)
        counts = np.where(rounds.n_arms > 1, np.ones(rounds.n_rounds) if weights is None else weights, 0.0)
        self.policy_ = score.fitted(rounds, weights=weights, seed=self.seed)
        scores = self.policy_.scores(rounds)
        total = float(counts.sum())
        self._theta = self._weights = np.zeros(0)
        self._labels, self._crossing, self.covariance_ = (), None, None
        self.burn_in_, self.n_iter_, self.n_rounds_, self.rank_ = start, 0, int(total), 0
        self.loss_ = float(counts @ pick_likelihood(scores, rounds).losses / total)
        self.agreement_ = float(counts @ (ragged.argmax(scores, rounds.offsets) == rounds.chosen) / total)
        self.shrinkage_ = np.nan
        self.log_likelihood_ = -total * self.loss_
        self.null_log_likelihood_ = -float(counts @ np.log(rounds.n_arms))
        self._warn([], stacklevel=2)

    def _report(
        self,
        theta: Vector,
        covariance: Matrix | None,
        basis: Basis,
        log: BanditLog | Parts,
        band: Band | None = None,
    ) -> None:
        """Keep the policy, and what is shown of its weights."""
        self._theta, self._crossing = theta, getattr(log, "crossing", None)
        rows = log.features if isinstance(log, BanditLog) and isinstance(log.features, np.ndarray) else None
        self.policy_ = basis.policy(theta, log, band)
        self._seen = None if rows is None else _seen(rows, squared=isinstance(self.policy_, ProductsPolicy))
        unknown = (
            np.full((len(theta),) * 2, np.nan) if covariance is None and not isinstance(basis, LinearBasis) else None
        )
        known = covariance if covariance is not None else unknown
        if known is None:
            names = LinearPolicy.of(theta, log).feature_names
            self._labels, self._weights, self.covariance_ = feature_labels(names, len(theta)), theta, None
            return
        self._labels, self._weights, self.covariance_ = basis.reported(theta, known, log)

    def _miss_fewest(
        self, objective: SoftmaxObjective, basis: Basis, log: BanditLog | Parts, progress: Progress | None
    ) -> None:
        """Put the policy of the smallest 0-1 loss in the place of the softmax's."""
        if basis.positive is not None and basis.positive.any():
            raise InputError("loss 'zero_one' knows no monotone curves: leave monotone out, or use loss='softmax'")
        found = fewest_misses(objective, self._theta, seed=self.seed, progress=progress)
        known = self.covariance_ is not None
        self._report(found.theta, np.full((len(found.theta),) * 2, np.nan) if known else None, basis, log)
        self.loss_ = found.loss
        self.n_iter_ = found.n_iter
        self.agreement_ = found.agreed / objective.total
        self.log_likelihood_ = -objective.total * objective.slope(found.theta).loss
        self.shrinkage_ = np.nan

    def _concerns(self, warning: OnlookerWarning) -> bool:
        """Whether what was found about the softmax fit is about the answer too: the 0-1 loss knows no penalty."""
        return self.loss == "softmax" or not isinstance(warning, (ConvergenceWarning, PenaltyDominatesWarning))

    def _inverse(self, log: BanditLog, round_probability: ArrayLike, sample_weight: ArrayLike | None) -> Vector:
        """Weights of rounds that were kept with known probabilities."""
        if sample_weight is not None:
            raise InputError("both sample_weight and round_probability are given: pass one of them")
        given = np.asarray(round_probability)
        if given.shape == (log.n_rounds,) and given.dtype.kind in "iuf":
            wrong = np.flatnonzero(~((given > 0) & (given <= 1)))
            if len(wrong):
                found = f"round_probability of round {wrong[0]} is {given[wrong[0]]:g}"
                raise InputError(f"{found}: a round that is in the log was kept with a probability above 0, at most 1")
        return np.asarray(1.0 / as_weights(given, log.n_rounds, "round_probability"))

    def _whole(self, n_rounds: int, sample_weight: ArrayLike | None) -> bool:
        """Whether all weights are whole numbers; refuse others where a sandwich would have to count them."""
        weights = as_weights(np.ones(n_rounds) if sample_weight is None else sample_weight, n_rounds, "sample_weight")
        broken = not_whole(weights)
        if broken is not None and self.covariance == "sandwich" and self.loss == "softmax":
            raise InputError(
                f"the weight of round {broken} is {weights[broken]:g}: a weight counts rounds, and the sandwich needs "
                "whole ones; round the weights, or use covariance='model'"
            )
        return broken is None


def _seen(rows: Features, *, squared: bool) -> tuple[Features, Features, Features, Features]:
    """Least, mean and largest value of every feature, and the mean square where it is asked for."""
    from onlooker.kernels.scattered import row_ranges

    n = len(rows)
    places = np.arange(n) if n <= RANGED else np.linspace(0, n - 1, RANGED).astype(np.int64)
    low, high, mean = row_ranges(rows, places)
    if not squared and rows.shape[1] > 1:
        return low, mean, high, mean
    some = rows.take(places, axis=0)
    return low, some.mean(axis=0), high, np.einsum("ij,ij->j", some, some) / len(some)
