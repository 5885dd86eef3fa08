"""Which score model a log calls for: the simplest that predicts held-out rounds about as well as the best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np

from onlooker.base.defaults import L2
from onlooker.base.errors import InputError
from onlooker.base.text import text_table
from onlooker.base.types import Vector
from onlooker.imitation.bounded import minimise_bounded
from onlooker.imitation.choice_model import (
    LINEAR,
    AnyScore,
    Basis,
    FreeScore,
    Linear,
    ScoreModel,
    as_score,
    pick_likelihood,
)
from onlooker.imitation.newton import minimise
from onlooker.imitation.scores.additive import FEWEST_KNOTS, Additive
from onlooker.imitation.scores.boosted import Boosted
from onlooker.imitation.scores.free_policy import shares_before
from onlooker.imitation.scores.neural import Neural
from onlooker.imitation.scores.products import Products
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog, feature_labels
from onlooker.logs.policy import Policy

BLOCKS, EVERY = 100, 4
"""Parts of the rounds, equally long, of which one in so many is held out."""

TOLERANCE = 2.5
"""How many standard errors (of the paired differences) worse than the best a simpler model may be.

With two, curves that do no harm were taken for 5 of 120 linear logs.
"""

LEAST_ROUNDS = 200
"""Fewer rounds decide nothing: the score is then linear."""

MOST_ROUNDS = 10_000
"""The last rounds of the log's second half, which decide."""

MOST_PRODUCTS = 600
"""Weights up to which products are tried: 33 features have 594."""

FREE_ROUNDS = 3_000
"""Rounds in the log's second half from which on trees are tried, or where LightGBM is not installed, a network."""

FIT_TOLERANCE = 1e-5
"""Newton decrement that is enough to compare models."""

SHARPNESS, RANDOM = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0), (0.0, 0.01, 0.03, 0.1, 0.2, 0.4)
"""What scores may be multiplied by, and shares of random picks: each model is judged with those that suit it best.

A learner that picks its best arm but for some random picks is no softmax of its scores, and the penalty shrinks the
weights of picks that hardly vary. Curves and products would be taken for coming nearer to how it picks, not to what it
values.
"""

SCORE_SHARE = 1e-3
"""Part of a score's variance within rounds that is not linear, from which on it counts as something of its own."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreChoice:
    """What each score model leaves unexplained of rounds that it has not seen."""

    models: tuple[AnyScore, ...]
    """Simplest first."""
    losses: Vector
    """Mean loss on the held-out rounds, one a model, with the sharpness and the random picks that suit it best."""
    errors: Vector
    """Standard error of each loss less the smallest."""
    chosen: int
    """Place of the one to take: the first that is not clearly worse than the best."""

    @property
    def model(self) -> AnyScore:
        """The one to take."""
        return self.models[self.chosen]

    @property
    def name(self) -> str:
        """What it is called."""
        return name_of(self.model)

    def __repr__(self) -> str:
        rows = [["score", "held-out loss", "above the best", "std. error", ""]]
        for k, model in enumerate(self.models):
            above = self.losses[k] - self.losses.min()
            mark = "taken" if k == self.chosen else ""
            rows.append([name_of(model), f"{self.losses[k]:.4f}", f"{above:.4f}", f"{self.errors[k]:.4f}", mark])
        return "\n".join(text_table(rows, "< >14 >15 >11  <"))


def name_of(model: AnyScore) -> str:
    """What a score model is called on the command line and in reports.

    Examples
    --------
    >>> name_of(Additive(knots=5))
    'additive'
    """
    return type(model).__name__.lower()


NAMED: dict[str, type[AnyScore]] = {
    "linear": Linear,
    "additive": Additive,
    "products": Products,
    "neural": Neural,
    "boosted": Boosted,
}
"""Score models by name, simplest first."""


def candidates(log: BanditLog) -> tuple[AnyScore, ...]:
    """The models that are tried for rounds like these, simplest first."""
    if isinstance(log.features, Layout) or log.n_rounds < LEAST_ROUNDS:
        return (LINEAR,)
    d = log.n_features
    found: list[AnyScore] = [LINEAR, Additive()]
    if d * (d + 3) // 2 <= min(MOST_PRODUCTS, log.n_rounds):
        found.append(Products())
    if log.n_rounds >= FREE_ROUNDS:
        found.append(Neural() if find_spec("lightgbm") is None else Boosted())
    return tuple(found)


def choose_score(
    log: BanditLog,
    models: Sequence[AnyScore] | None = None,
    *,
    l2: float = L2,
    seed: int = 0,
    weights: Vector | None = None,
) -> ScoreChoice:
    """Fit every model to three quarters of the log's second half, and compare their losses on the rest.

    Whole blocks of rounds are held out, since neighbouring rounds are alike. The second half is used because that is
    what should be imitated: by then a learner has mostly made up its mind. How sharply a model picks by its scores,
    and how often at random, is what suits it best there. With `weights`, one a round, each round counts as often as its
    weight says.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(2000, 3, 2))
    >>> bent = (3 * np.abs(X[..., 0]) + X[..., 1] + rng.gumbel(size=(2000, 3))).argmax(axis=1)
    >>> choose_score(BanditLog.from_dense(X, bent), [LINEAR, Additive()]).model
    Additive(knots=None, monotone={}, interactions=())
    """
    late, counts = _late(log, weights)
    tried = tuple(candidates(late) if models is None else models)
    if len(tried) == 1 or late.n_rounds < LEAST_ROUNDS:
        return ScoreChoice(models=tried[:1], losses=np.full(1, np.nan), errors=np.zeros(1), chosen=0)
    block = np.floor(BLOCKS * shares_before(counts) + 1e-9).astype(np.int64)
    held = block % EVERY == EVERY - 1
    kept, judged = late[np.flatnonzero(~held)], late[np.flatnonzero(held)]
    blocks = np.unique(block[held], return_inverse=True)[1]
    shares = counts[held] / np.bincount(blocks, counts[held])[blocks]
    fitted = None if weights is None else counts[~held]

    def block_losses(model: AnyScore) -> Vector:
        """Mean loss of every held-out block under a model fitted to the other rounds."""
        scores = fitted_policy(model, kept, l2=l2, seed=seed, weights=fitted).scores(judged)
        losses = [np.bincount(blocks, shares * one).astype(np.float64) for one in _judged_losses(scores, judged)]
        return min(losses, key=lambda one: float(one.mean()))

    losses = np.array([block_losses(model) for model in tried])
    best = int(losses.mean(axis=1).argmin())
    worse = losses - losses[best]
    errors = worse.std(axis=1, ddof=1) / np.sqrt(losses.shape[1])
    within = worse.mean(axis=1) <= TOLERANCE * errors
    return ScoreChoice(models=tried, losses=losses.mean(axis=1), errors=errors, chosen=int(np.flatnonzero(within)[0]))


def _late(log: BanditLog, weights: Vector | None) -> tuple[BanditLog, Vector]:
    """Rounds with a choice of the log's second half, the last ones at most, and how often each counts."""
    counts = np.ones(log.n_rounds) if weights is None else weights
    before, total = np.cumsum(counts) - counts, float(counts.sum())
    late = (before >= max(total // 2, total - MOST_ROUNDS)) & (log.n_arms > 1) & (counts > 0)
    return log[np.flatnonzero(late)], counts[late]


def _judged_losses(scores: Vector, log: BanditLog) -> Iterator[Vector]:
    """Loss of every pick, for all ways to pick by the scores."""
    for sharpness in SHARPNESS:
        picked = np.exp(-pick_likelihood(sharpness * scores, log).losses)
        for random in RANDOM:
            yield -np.log(np.maximum((1 - random) * picked + random / log.n_arms, 1e-300))


def fitted_policy(
    model: AnyScore, log: BanditLog, *, l2: float = L2, seed: int = 0, weights: Vector | None = None
) -> Policy:
    """The policy of a score model that imitates all rounds, without intervals or checks."""
    if isinstance(model, FreeScore):
        return model.fitted(log, weights=weights, seed=seed)
    basis = model.prepared(log, l2=l2, weights=weights)
    objective = SoftmaxObjective(basis.basis(log), l2=basis.l2, weights=weights)
    if basis.positive is not None and basis.positive.any():
        return basis.policy(minimise_bounded(objective, basis.positive)[0].theta, log)
    return basis.policy(minimise(objective, tolerance=FIT_TOLERANCE).theta, log)


def basis_of(log: BanditLog, score: object, *, l2: float = L2) -> Basis:
    """The basis of a score that is linear in one, chosen on the log's second half; others are refused.

    Examples
    --------
    >>> log = BanditLog.from_dense(np.random.default_rng(0).normal(size=(300, 3, 2)), np.zeros(300, dtype=int))
    >>> basis_of(log, "products").basis(log).n_features
    5
    """
    model = as_score(score)
    if isinstance(model, str):
        tried = [one for one in candidates(log[log.n_rounds // 2 :]) if isinstance(one, ScoreModel)]
        model = choose_score(log, tried, l2=l2).model
    if not isinstance(model, ScoreModel):
        raise InputError(f"score={score!r} is not linear in a basis: use Additive() or Products() here")
    if isinstance(model, Additive) and model.knots is None:
        # More knots are for bands. Few weights are followed better, and in a quarter of the time.
        model = replace(model, knots=FEWEST_KNOTS)
    return model.prepared(log.suffix(log.n_rounds // 2), l2=l2)


def expanded(log: BanditLog, score: object, *, l2: float = L2, seed: int = 0) -> BanditLog:
    """The log with features in which the score is linear: methods for linear scores then see all of it.

    Of a score that is linear in a basis these are its columns. Beside the features of others there is their score, less
    what a linear score has of it. Every round is scored by a fit to rounds of the second half that it is not among.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3, 2))
    >>> log = BanditLog.from_dense(X, (X[..., 0] * X[..., 1]).argmax(axis=1))
    >>> expanded(log, "products").n_features, expanded(log, "neural").n_features
    (5, 3)
    """
    model = choose_score(log, l2=l2, seed=seed).model if as_score(score) == "auto" else as_score(score)
    if isinstance(model, Linear):
        return log
    if log.partial:
        raise InputError(f"score={score!r} needs all rounds, picks and offers: use score=Linear() here")
    log = log.written_out()
    if not isinstance(model, FreeScore):
        return basis_of(log, model, l2=l2).basis(log)
    side = np.arange(log.n_rounds) * BLOCKS // max(1, log.n_rounds) % 2
    late = np.arange(log.n_rounds) >= log.n_rounds // 2
    scores = np.empty(len(log.features))
    for one in (0, 1):
        policy = model.fitted(log[np.flatnonzero(late & (side != one))], seed=seed)
        rows = np.repeat(side == one, log.n_arms)
        scores[rows] = policy.scores(log[np.flatnonzero(side == one)])
    both = np.column_stack([log.dense, scores]).astype(np.float64)
    means = np.add.reduceat(both, log.offsets[:-1], axis=0) / log.n_arms[:, None]
    apart = both - np.repeat(means, log.n_arms, axis=0)
    weights = np.linalg.lstsq(apart[:, :-1], apart[:, -1])[0]
    beyond = scores - log.dense @ weights
    if (apart[:, -1] - apart[:, :-1] @ weights).var() <= SCORE_SHARE * apart[:, -1].var():
        return log
    names = (*feature_labels(log.weight_names, log.n_features), f"{name_of(model)} score")
    return log.with_features(np.column_stack([log.dense, beyond]), names)
