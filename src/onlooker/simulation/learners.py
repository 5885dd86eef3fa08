"""Learners that come with the library: optimistic, sampling, greedy and uniform ones."""

from dataclasses import dataclass

import numpy as np

from onlooker.base.checks import as_number, as_whole
from onlooker.base.errors import InputError
from onlooker.simulation.ridge import RidgeLearner, Rule


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


@dataclass(frozen=True, repr=False)
class EpsilonGreedy(RidgeLearner):
    """Pick uniformly with probability `epsilon`, else the best arm under the estimate.

    Examples
    --------
    >>> EpsilonGreedy(0.1)
    EpsilonGreedy(epsilon=0.1, ridge=1.0, batch=1)
    """

    epsilon: float = 0.05
    """Share of uniform picks."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", as_number(self.epsilon, "epsilon", least=0.0, most=1.0))

    def rule(self, n_features: int, noise: float) -> Rule:  # noqa: ARG002
        """See `RidgeLearner.rule`."""
        from onlooker.kernels.learning import MIXING

        return Rule(MIXING, np.array([self.epsilon, np.inf]))


@dataclass(frozen=True, repr=False)
class ExploreThenCommit(RidgeLearner):
    """Pick uniformly for `explore` rounds, then always the best arm under the estimate at that moment.

    Examples
    --------
    >>> ExploreThenCommit(500)
    ExploreThenCommit(explore=500, ridge=1.0, batch=1)
    """

    explore: int = 1000
    """Rounds of uniform picks; at least one batch."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "explore", as_whole(self.explore, "explore", least=1))
        if self.explore < self.batch:
            raise InputError(
                f"explore is {self.explore}, but the first rewards are seen after a batch of {self.batch} rounds: "
                "explore for at least one batch"
            )

    def rule(self, n_features: int, noise: float) -> Rule:  # noqa: ARG002
        """See `RidgeLearner.rule`."""
        from onlooker.kernels.learning import MIXING

        return Rule(MIXING, np.array([1.0, self.explore]), last_update=self.explore)


@dataclass(frozen=True, repr=False)
class UniformRandom(RidgeLearner):
    """Pick uniformly in every round: nothing to recover.

    Examples
    --------
    >>> UniformRandom()
    UniformRandom(ridge=1.0, batch=1)
    """

    def rule(self, n_features: int, noise: float) -> Rule:  # noqa: ARG002
        """See `RidgeLearner.rule`."""
        from onlooker.kernels.learning import MIXING

        return Rule(MIXING, np.array([1.0, np.inf]))
