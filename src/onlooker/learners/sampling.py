"""Chance by design: draw a theta, or draw an arm by its score."""

from dataclasses import dataclass

import numpy as np

from onlooker.checks import as_number
from onlooker.learners.ridge import RidgeLearner, Rule


@dataclass(frozen=True, repr=False)
class LinTS(RidgeLearner):
    """Thompson sampling: draw theta from a normal with covariance `nu * V^-1`, pick the best arm under it.

    Examples
    --------
    >>> LinTS()
    LinTS(nu=None, ridge=1.0, batch=1)
    """

    nu: float | None = None
    """Scale of the covariance; None is `noise^2 * d`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nu is not None:
            object.__setattr__(self, "nu", as_number(self.nu, "nu", least=0.0))

    def rule(self, n_features: int, noise: float) -> Rule:
        """See `RidgeLearner.rule`."""
        from onlooker.kernels.learning import SAMPLING

        nu = noise**2 * n_features if self.nu is None else self.nu
        return Rule(SAMPLING, np.array([np.sqrt(nu)]))


@dataclass(frozen=True, repr=False)
class Boltzmann(RidgeLearner):
    """Draw an arm with probability proportional to `exp(<x, theta> / temperature)`.

    Examples
    --------
    >>> Boltzmann(0.05)
    Boltzmann(temperature=0.05, ridge=1.0, batch=1)
    """

    temperature: float = 0.02
    """Small: nearly greedy. Large: nearly uniform."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "temperature", as_number(self.temperature, "temperature", above=0.0))

    def rule(self, n_features: int, noise: float) -> Rule:  # noqa: ARG002
        """See `RidgeLearner.rule`."""
        from onlooker.kernels.learning import SOFTMAX

        return Rule(SOFTMAX, np.array([self.temperature]))
