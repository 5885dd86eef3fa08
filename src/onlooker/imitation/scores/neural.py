"""A small network as score: one hidden layer beside a linear score, fitted by L-BFGS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from onlooker.base.checks import as_number, as_whole
from onlooker.base.documents import numbers, table
from onlooker.base.errors import InputError
from onlooker.base.types import Matrix, Vector
from onlooker.imitation.choice_model import pick_likelihood
from onlooker.imitation.scores.free_policy import FreePolicy, choices, shares_before, typical_rows
from onlooker.logs.log import BanditLog

DECAYS = (1e-2, 1e-3, 1e-4)
"""Penalties that are tried on held-out rounds."""

HELD_OUT = 5
"""One block of rounds in so many is held out for them."""

BLOCKS = 50
"""Blocks of rounds."""


@dataclass(frozen=True)
class Neural:
    """A network with one hidden layer (tanh), beside a linear score.

    The network is ours, in NumPy, and needs no further package. How strongly it is regularised is chosen on held-out
    rounds. The fit is not convex, so it may end at another of several good networks; the same seed gives the same one.

    Parameters
    ----------
    hidden
        Units of the hidden layer.
    decay
        Penalty on the mean loss, `decay/2 |weights|^2`; None chooses one on held-out rounds.
    max_iter
        Steps of the optimiser at most.

    Examples
    --------
    >>> from onlooker import SuffixImitation
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 4, 2))
    >>> chosen = (6 * X[..., 0] * X[..., 1] + rng.gumbel(size=(2000, 4))).argmax(axis=1)
    >>> log = BanditLog.from_dense(X, chosen)
    >>> SuffixImitation(score=Neural(8, decay=1e-4), burn_in="naive").fit(log).score(log) > 0.7
    True
    """

    hidden: int = 32
    _: KW_ONLY
    decay: float | None = None
    max_iter: int = 200

    def __post_init__(self) -> None:
        as_whole(self.hidden, "hidden", least=1)
        as_whole(self.max_iter, "max_iter", least=1)
        if self.decay is not None:
            as_number(self.decay, "decay", least=0.0)

    def fitted(self, log: BanditLog, *, weights: Vector | None = None, seed: int = 0) -> NeuralPolicy:
        """The network that imitates these rounds."""
        log, counts = choices(log, weights)
        rows = log.dense.astype(np.float64)
        per_row = np.repeat(counts, log.n_arms)
        means = np.average(rows, axis=0, weights=per_row)
        spreads = np.sqrt(np.average((rows - means) ** 2, axis=0, weights=per_row))
        spreads = np.where(spreads > 0, spreads, 1.0)
        problem = _Problem(log, (rows - means) / spreads, self.hidden, self.max_iter)
        start = problem.start(seed)
        decay = self.decay
        if decay is None:
            block = np.floor(BLOCKS * shares_before(counts) + 1e-9)
            held = np.where(block % HELD_OUT == HELD_OUT - 1, counts, 0.0)
            decay = DECAYS[1]
            if held.any() and (counts - held).any():
                losses = []
                for one in DECAYS:
                    # From the network with the stronger penalty: the path costs little more than one fit.
                    start = problem.solved(start, counts - held, one)
                    losses.append(problem.loss(start, held))
                decay = DECAYS[int(np.argmin(losses))]
                start = problem.start(seed)
        parts = problem.parts(problem.solved(start, counts, decay))
        return NeuralPolicy(typical_rows(log), log.feature_names, log.categories, means=means, spreads=spreads, **parts)


class _Problem:
    """Loss of a network on a log, as a function of all its weights in a row."""

    def __init__(self, log: BanditLog, rows: Matrix, hidden: int, max_iter: int) -> None:
        self.log, self.rows, self.hidden, self.max_iter = log, rows, hidden, max_iter

    def start(self, seed: int) -> Vector:
        """Small random weights; the linear score and the outer layer begin at zero and near it."""
        rng, d = np.random.default_rng(seed), self.rows.shape[1]
        inner = rng.normal(size=(d, self.hidden)) / np.sqrt(d)
        return np.concatenate(
            [np.zeros(d), inner.ravel(), rng.normal(size=self.hidden), 0.1 * rng.normal(size=self.hidden)]
        )

    def parts(self, weights: Vector) -> dict[str, Any]:
        """The weights as those of each layer."""
        d, h = self.rows.shape[1], self.hidden
        linear, inner, shifts, outer = np.split(weights, np.cumsum([d, d * h, h]))
        return {"linear": linear, "inner": inner.reshape(d, h), "shifts": shifts, "outer": outer}

    def loss(self, weights: Vector, counts: Vector) -> float:
        """Mean loss on counted rounds."""
        layers = self.parts(weights)
        scores = (
            self.rows @ layers["linear"] + np.tanh(self.rows @ layers["inner"] + layers["shifts"]) @ layers["outer"]
        )
        return float(counts @ pick_likelihood(scores, self.log).losses / counts.sum())

    def solved(self, start: Vector, counts: Vector, decay: float) -> Vector:
        """Weights that minimise the loss, from a start."""
        from scipy.optimize import minimize

        per_row = np.repeat(counts / counts.sum(), self.log.n_arms)

        def value_and_slope(weights: Vector) -> tuple[float, Vector]:
            layers = self.parts(weights)
            units = np.tanh(self.rows @ layers["inner"] + layers["shifts"])
            found = pick_likelihood(self.rows @ layers["linear"] + units @ layers["outer"], self.log)
            pull = (found.predicted - found.expected) * per_row
            back = (1 - units**2) * np.outer(pull, layers["outer"])
            slope = np.concatenate([self.rows.T @ pull, (self.rows.T @ back).ravel(), back.sum(axis=0), units.T @ pull])
            loss = float(counts @ found.losses / counts.sum())
            return loss + 0.5 * decay * float(weights @ weights), slope + decay * weights

        options: Any = {"maxiter": self.max_iter, "ftol": 1e-8, "gtol": 1e-6}
        result = minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options=options)
        return np.asarray(result.x, dtype=np.float64)


class NeuralPolicy(FreePolicy):
    """Scores `linear'z + outer'tanh(inner'z + shifts)` with `z` the features in units of their spread."""

    schema: ClassVar[str] = "onlooker.neural-policy/1"

    def __init__(
        self,
        typical: ArrayLike,
        feature_names: Sequence[str] | None = None,
        categories: Mapping[str, Sequence[str]] | None = None,
        *,
        means: Vector,
        spreads: Vector,
        linear: Vector,
        inner: Matrix,
        shifts: Vector,
        outer: Vector,
    ) -> None:
        super().__init__(typical, feature_names, categories)
        d, h = self.typical.shape[1], len(shifts)
        shapes = [one.shape for one in (means, spreads, linear, inner, shifts, outer)]
        if shapes != [(d,), (d,), (d,), (d, h), (h,), (h,)]:
            raise InputError(f"the layers of a network on {d} features with {h} units do not have their shapes")
        if not (spreads > 0).all():
            raise InputError("spreads must be positive")
        self.means, self.spreads, self.linear, self.inner = means, spreads, linear, inner
        self.shifts, self.outer = shifts, outer

    def row_scores(self, rows: Matrix) -> Vector:
        """Score of every row of features."""
        z = (rows - self.means) / self.spreads
        return np.asarray(z @ self.linear + np.tanh(z @ self.inner + self.shifts) @ self.outer)

    def content(self) -> dict[str, Any]:
        """The layers."""
        names = ("typical", "means", "spreads", "linear", "inner", "shifts", "outer")
        return {name: getattr(self, name).tolist() for name in names}

    @classmethod
    def made_of(cls, document: Mapping[str, Any], names: Any, categories: Any) -> Self:
        """The policy with these layers, checked."""
        lists = {name: numbers(document.get(name), name) for name in ("means", "spreads", "linear", "shifts", "outer")}
        typical, inner = (table(document.get(name), name) for name in ("typical", "inner"))
        return cls(typical, names, categories, inner=inner, **lists)

    def __reduce__(self) -> tuple[Any, ...]:
        return NeuralPolicy.made_of, (self.content(), self.feature_names, self.categories and dict(self.categories))

    def __repr__(self) -> str:
        return f"NeuralPolicy({self.typical.shape[1]} features, {len(self.shifts)} units)"
