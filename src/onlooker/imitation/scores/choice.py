"""Which score model a log calls for: the simplest that predicts held-out rounds about as well as the best."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from onlooker.base.defaults import L2
from onlooker.base.errors import InputError
from onlooker.base.text import text_table
from onlooker.base.types import Index, Vector
from onlooker.imitation.bounded import minimise_bounded
from onlooker.imitation.likelihood import pick_likelihood
from onlooker.imitation.newton import minimise
from onlooker.imitation.score_models import LINEAR, FreeScore, Linear, Products, ScoreModel
from onlooker.imitation.scores.additive import Additive
from onlooker.imitation.scores.boosted import Boosted
from onlooker.imitation.scores.neural import Neural
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog
from onlooker.logs.policy import Policy

AnyScore = ScoreModel | FreeScore
"""Every kind of score model."""

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


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoreChoice:
    """What each score model leaves unexplained of rounds that it has not seen."""

    models: tuple[AnyScore, ...]
    """Simplest first."""
    losses: Vector
    """Mean loss on the held-out rounds, one a model."""
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


def as_score(score: object) -> AnyScore | str:
    """The score model that a `score` parameter stands for; `"auto"` stays.

    Examples
    --------
    >>> as_score("additive")
    Additive(knots=8, monotone={}, interactions=())
    """
    if score == "auto":
        return "auto"
    if isinstance(score, str) and score in NAMED:
        return NAMED[score]()
    if isinstance(score, (ScoreModel, FreeScore)) and not isinstance(score, type):
        return score
    raise InputError(
        f"score is {score!r}: use 'auto', Linear(), Additive(), Products(), Neural() or Boosted(), or the name of one"
    )


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
    log: BanditLog, models: Sequence[AnyScore] | None = None, *, l2: float = L2, seed: int = 0
) -> ScoreChoice:
    """Fit every model to three quarters of the log's second half, and compare their losses on the rest.

    Whole blocks of rounds are held out, since neighbouring rounds are alike. The second half is used because that is
    what should be imitated: by then a learner has mostly made up its mind.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(2000, 3, 2))
    >>> bent = (3 * np.abs(X[..., 0]) + X[..., 1] + rng.gumbel(size=(2000, 3))).argmax(axis=1)
    >>> choose_score(BanditLog.from_dense(X, bent), [LINEAR, Additive()]).model
    Additive(knots=8, monotone={}, interactions=())
    """
    late = log[max(log.n_rounds // 2, log.n_rounds - MOST_ROUNDS) :]
    late = late[np.flatnonzero(late.n_arms > 1)]
    tried = tuple(candidates(late) if models is None else models)
    if len(tried) == 1 or late.n_rounds < LEAST_ROUNDS:
        return ScoreChoice(models=tried[:1], losses=np.full(1, np.nan), errors=np.zeros(1), chosen=0)
    block = np.arange(late.n_rounds) * BLOCKS // late.n_rounds
    held = block % EVERY == EVERY - 1
    kept, judged = late[np.flatnonzero(~held)], late[np.flatnonzero(held)]
    blocks = np.unique(block[held], return_inverse=True)[1]
    losses = np.array([_block_losses(model, kept, judged, blocks, l2, seed) for model in tried])
    best = int(losses.mean(axis=1).argmin())
    worse = losses - losses[best]
    errors = worse.std(axis=1, ddof=1) / np.sqrt(losses.shape[1])
    within = worse.mean(axis=1) <= TOLERANCE * errors
    return ScoreChoice(models=tried, losses=losses.mean(axis=1), errors=errors, chosen=int(np.flatnonzero(within)[0]))


def _block_losses(model: AnyScore, kept: BanditLog, judged: BanditLog, blocks: Index, l2: float, seed: int) -> Vector:
    """Mean loss of every held-out block under a model fitted to the other rounds."""
    policy = fitted_policy(model, kept, l2=l2, seed=seed)
    losses = pick_likelihood(policy.scores(judged), judged).losses
    return np.bincount(blocks, losses) / np.bincount(blocks)


def fitted_policy(model: AnyScore, log: BanditLog, *, l2: float = L2, seed: int = 0) -> Policy:
    """The policy of a score model that imitates all rounds, without intervals or checks."""
    if isinstance(model, FreeScore):
        return model.fitted(log, seed=seed)
    basis = model.prepared(log, l2=l2)
    objective = SoftmaxObjective(basis.basis(log), l2=basis.l2)
    if basis.positive is not None and basis.positive.any():
        return basis.policy(minimise_bounded(objective, basis.positive)[0].theta, log)
    return basis.policy(minimise(objective, tolerance=FIT_TOLERANCE).theta, log)
