"""Picks that are known only to a set, drawn: for observers that follow a learner pick by pick.

Data augmentation (Tanner and Wong 1987): picks are drawn within their sets by how probable an observer of all other
picks says that they were, the observer follows the drawn picks, and so on for a few sweeps. Each of several such chains
gives a log whose picks are all there; what is found in them is combined by Rubin's rules, so that what the sets leave
open widens intervals.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from onlooker.base.errors import InputError, OnlookerWarning, PicksDrawnWarning
from onlooker.base.numerics import student_factor
from onlooker.base.types import Index, Matrix, Vector
from onlooker.logs.drawn import draw_picks, with_picks
from onlooker.logs.log import BanditLog
from onlooker.logs.policy import as_linear

if TYPE_CHECKING:
    from onlooker.observers.dynamic_imitation import DynamicImitation

CHAINS = 5
"""Logs that are drawn: Rubin's rules lose a few per cent with so many."""
SWEEPS = 2
"""Times that picks are drawn again, given those drawn before; the first are from one policy for all rounds."""

One = TypeVar("One")


def completed_picks(log: BanditLog, *, chains: int = CHAINS, sweeps: int = SWEEPS, seed: int = 0) -> list[Index]:
    """Draws of all picks of a log that knows some only to a set, by data augmentation; the same for the same seed."""
    from onlooker.observers.dynamic_imitation import DynamicImitation
    from onlooker.observers.suffix_imitation import SuffixImitation

    with warnings.catch_warnings():
        # What there is to say is said of the fit to what is drawn.
        warnings.simplefilter("ignore")
        start = SuffixImitation(burn_in="naive").fit(log)
        theta, spread = start.theta_, start.covariance_
        found = []
        for chain in range(chains):
            rng = np.random.default_rng([seed, chain])
            drawn = _drawn(theta, spread, rng)
            policy = start.policy_.probabilities if spread is None else _softmax_of(drawn)
            picks = draw_picks(log, policy(log), rng)
            for _ in range(sweeps):
                known = with_picks(log, picks)
                observer: DynamicImitation = DynamicImitation().fit(known)
                picks = draw_picks(log, observer.propensities(known, ahead=False), rng)
            found.append(picks)
    return found


def _drawn(theta: Vector, spread: Matrix | None, rng: np.random.Generator) -> Vector:
    """Weights from what is known of them; those without intervals as they are."""
    if spread is None:
        return theta
    known = np.isfinite(np.diag(spread))
    found = theta.copy()
    if known.any():
        found[known] = rng.multivariate_normal(theta[known], spread[np.ix_(known, known)], check_valid="ignore")
    return found


def _softmax_of(theta: Vector) -> Callable[[BanditLog], Vector]:
    from onlooker.logs.policy import LinearPolicy

    return lambda log: LinearPolicy(theta, log.feature_names, log.categories, log.crossing).probabilities(log)


def rubin(estimates: list[Vector], covariances: list[Matrix]) -> tuple[Vector, Matrix]:
    """Mean estimate, and its covariance: that within draws, and between them (Rubin 1987).

    What is between a few draws is itself known badly, so it counts as much as Student's distribution says.

    Examples
    --------
    >>> draws = [np.array([value]) for value in (1.0, 2.0, 3.0, 2.0, 2.0)]
    >>> mean, covariance = rubin(draws, [np.eye(1)] * 5)
    >>> mean, covariance.round(2)
    (array([2.]), array([[2.2]]))
    """
    mean, n = np.mean(estimates, axis=0), len(estimates)
    apart = np.array(estimates) - mean
    if n == 1:
        return mean, np.asarray(covariances[0])
    between = student_factor(n - 1) * (apart.T @ apart) / (n - 1)
    return mean, np.mean(covariances, axis=0) + (1 + 1 / n) * between


def fit_draws(observer: Any, logs: Sequence[BanditLog]) -> Any:
    """Fit to each of several logs that complete the same one, as `draw_missing` gives them, and combine the fits.

    The result is the observer, fitted: `theta_` is the mean, and `covariance_` counts what differs between the logs
    (Rubin 1987). Everything else is that of the first log.

    Examples
    --------
    >>> from onlooker import SuffixImitation, draw_missing
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 4, 2))
    >>> chosen = (X @ [1.0, 0.5] + rng.gumbel(size=(300, 4))).argmax(axis=1)
    >>> X[rng.random((300, 4)) < 0.2, 0] = np.nan
    >>> logs = draw_missing(X.reshape(-1, 2), np.arange(301) * 4, chosen, n=5)
    >>> fit_draws(SuffixImitation(burn_in="naive"), logs).theta_.round(1)
    array([1. , 0.5])
    """
    if not logs:
        raise InputError("there are no logs to fit: pass what draw_missing gives")
    fits: list[Any] = [type(observer)(**observer.get_params(deep=False)).fit(log) for log in logs]
    _combine(observer, fits)
    return observer


def fit_drawn(
    observer: Any, log: BanditLog, fit: Callable[[Any, BanditLog], Any], kind: Callable[[Any], object]
) -> list[PicksDrawnWarning]:
    """Fit to logs of drawn picks, combine those of the most common kind, and say what is to be known of it."""
    parameters = observer.get_params(deep=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnlookerWarning)
        fits = [(fit(type(observer)(**parameters), with_picks(log, picks)), picks) for picks in completed_picks(log)]
    alike = [one for one, _ in most_common(fits, key=lambda pair: kind(pair[0]))]
    _combine(observer, alike)
    observer._drawn = tuple(fits)  # noqa: SLF001  what observers keep of drawn picks
    text = (
        f"in {log.n_sets:,} of {log.n_rounds:,} rounds only a set of arms is known that holds the pick: picks are "
        f"drawn from the sets {len(fits)} times, and what the sets leave open widens intervals. No action is needed"
    )
    found = [PicksDrawnWarning(text)]
    if len(alike) < len(fits):
        found.append(
            PicksDrawnWarning(
                f"the draws disagree on how the learner explores: {len(alike)} of {len(fits)} agree with this. "
                "Get smaller sets, or some picks"
            )
        )
    return found


def _combine(observer: Any, fits: Sequence[Any]) -> None:
    """Have an observer be the first of several fits, with weights and covariance of them all."""
    theta, covariance = rubin([one.theta_ for one in fits], [one.covariance_ for one in fits])
    first = as_linear(fits[0].policy_, "theta_")
    found = {
        "policy_": type(first)(theta, first.feature_names, first.categories, first.crossing),
        "_combined": (theta, covariance),
    }
    # What a summary shows, where observers keep it.
    kept = {name: value for name, value in (("covariance_", covariance), ("_weights", theta)) if name in vars(fits[0])}
    observer.__dict__.update(vars(fits[0]) | found | kept)


def most_common(values: list[One], key: Callable[[One], object]) -> list[One]:
    """Those of the values whose key is the most common; the first of equals.

    Examples
    --------
    >>> most_common([3, 4, 5], key=lambda value: value % 2)
    [3, 5]
    """
    kinds = Counter(key(value) for value in values)
    best = kinds.most_common(1)[0][0]
    return [value for value in values if key(value) == best]
