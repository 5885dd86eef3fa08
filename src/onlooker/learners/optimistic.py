"""Optimism: score every arm by the most that it may be worth."""

from dataclasses import dataclass

import numpy as np

from onlooker.checks import as_number
from onlooker.learners.ridge import RidgeLearner, Rule


@dataclass(frozen=True, repr=False)
class LinUCB(RidgeLearner):
    """Pick the largest `<x, theta> + alpha * sqrt(x' V^-1 x)`.

    Examples
    --------
    >>> LinUCB(0.2, batch=10)
    LinUCB(alpha=0.2, ridge=1.0, batch=10)
    """

    alpha: float = 0.1
    """Width of the bonus."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "alpha", as_number(self.alpha, "alpha", least=0.0))

    def rule(self, n_features: int, noise: float) -> Rule:  # noqa: ARG002
        """See `RidgeLearner.rule`."""
        from onlooker.kernels.learning import OPTIMISTIC

        return Rule(OPTIMISTIC, np.array([self.alpha, 0.0, 0.0]))


@dataclass(frozen=True, repr=False)
class OFUL(RidgeLearner):
    """LinUCB whose width follows from a confidence set (Abbasi-Yadkori, Pal and Szepesvari, 2011).

    The width is `R sqrt(2 log(det(V)^(1/2) / (ridge^(d/2) delta))) + sqrt(ridge) * norm_bound`, with R the noise of the
    environment.

    Examples
    --------
    >>> OFUL(delta=0.05)
    OFUL(delta=0.05, norm_bound=1.0, ridge=1.0, batch=1)
    """

    delta: float = 0.01
    """Probability with which `theta_star` may ever lie outside of the confidence set."""

    norm_bound: float = 1.0
    """Largest norm that `theta_star` may have."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "delta", as_number(self.delta, "delta", above=0.0, most=1.0))
        object.__setattr__(self, "norm_bound", as_number(self.norm_bound, "norm_bound", least=0.0))

    def rule(self, n_features: int, noise: float) -> Rule:  # noqa: ARG002
        """See `RidgeLearner.rule`."""
        from onlooker.kernels.learning import OPTIMISTIC

        parameters = [np.sqrt(self.ridge) * self.norm_bound, noise, -2.0 * np.log(self.delta)]
        return Rule(OPTIMISTIC, np.array(parameters))
