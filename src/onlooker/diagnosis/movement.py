"""Whether what a learner values moves: what one fixed policy leaves unexplained, followed over time.

In each short stretch of rounds the score of the likelihood says in which direction the picks pull the weights of one
fixed policy. While that policy is at work, what a stretch adds has mean zero given everything before it, whatever is
on offer. So two questions can be asked of the products of such scores, with errors taken from the products themselves:

- Do stretches pull the same way as those shortly before them? Then the weights move (`Steadiness`).
- Do rounds resemble their past more than their future? A learner that settles resembles its future: its steps get
  smaller and smaller. Where the step ahead is larger than the one behind, something learned was given up (`GivenUp`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from onlooker.base.numerics import UNIDENTIFIED, Curvature
from onlooker.base.types import Index, Matrix
from onlooker.imitation.mixture import LEAST_WEIGHT, Mixture, explain, fit_policy
from onlooker.imitation.newton import Fit
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.logs.log import BanditLog

SHORT = 20
"""Rounds of a short stretch: several, so that few arms and features give scores that look normal."""

MEMORIES = (1, 3, 10, 30)
"""Short stretches that the past is averaged over: from 20 rounds to 600, as learners move fast or slowly."""

NUISANCE, MOST_NUISANCE = 100, 20
"""How a learner picks is estimated for parts of at least so many rounds, so many of them at most."""

RIDGE = 1e-3
"""Part of its own information that every weight gets in addition: directions that picks hardly show do not count."""

PIECES = 120
"""Past and future are compared by so many stretches at most, so that matrices of products stay small."""

PLACES = 25
"""Places at which past and future are compared."""

LEAST_PART = 0.1
"""Past and future are at least this part of the log each."""

DRAWS = 499
"""Random signs behind a p-value, always the same ones."""

SAME = 1e-9
"""Statistics that differ by less than this part are the same but for rounding."""

LEAST_P = 1 / (1 + DRAWS)
"""The p-value of a statistic that no draw attains."""

LEAST_COST = 0.02
"""A step that costs the policy before it less than this part of what a policy predicts is not looked at."""

CLEAR = ((0.02, 3.0), (0.1, 2.25), (0.5, 1.0))
"""What a step has to cost, and how many times as far as chance allows it has to stand out then.

Learners with weights of their own for each arm correct an arm that they had misjudged: such steps cost up to three
tenths, and stand out up to twice as far as chance allows. Those of learners whose world turned stand out six times so.
"""

MATERIAL_NOW = 0.005
"""Movement at the end counts if following it would predict picks better by this part."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Pull:
    """What one policy leaves unexplained, stretch by stretch."""

    fit: Fit
    """The policy, fitted to the picks that look like its own."""
    mixture: Mixture
    """How the learner picks."""
    bounds: Index
    """First round of each short stretch, and the number of rounds, shape (n + 1,)."""
    scores: Matrix
    """Score of each in units of its error for one round, shape (n, rank); they sum to zero."""
    root: Matrix
    """Takes scores to moves of theta, shape (d, rank)."""
    gain: float
    """Log-probability of a pick above random guessing, on average."""


def find_pull(log: BanditLog, others: Matrix, near: Fit | None = None) -> Pull:
    """Fit one policy to all rounds, and look at what is left.

    Examples
    --------
    >>> from onlooker.imitation.mixture import other_ways
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(800, 4, 2))
    >>> log = BanditLog.from_dense(X, (X @ [2.0, 1.0] + rng.gumbel(size=(800, 4))).argmax(axis=1))
    >>> found = find_pull(log, other_ways(log))
    >>> found.scores.shape, bool(found.gain > 0.3)
    ((40, 2), True)
    """
    fit, _ = fit_policy(log, others, near)
    n_rounds = log.n_rounds
    parts = max(1, min(MOST_NUISANCE, n_rounds // NUISANCE))
    mixture = explain(log, log.features @ fit.theta, others, _cuts(n_rounds, parts))
    bounds = _cuts(n_rounds, max(2, n_rounds // SHORT))
    rows = log.offsets[bounds]
    raw = np.array([log.features[a:b].T @ mixture.residuals[a:b] for a, b in pairwise(rows.tolist())])
    weights = np.maximum(mixture.own, LEAST_WEIGHT)
    at = SoftmaxObjective(log, l2=0.0, weights=weights).evaluate(fit.theta)
    information = at.hessian + RIDGE * np.diag(np.diag(at.hessian))
    root = Curvature.of(information, flat=UNIDENTIFIED).root
    scores = raw @ root
    return Pull(
        fit=fit,
        mixture=mixture,
        bounds=bounds,
        scores=scores - scores.mean(axis=0),
        root=root,
        gain=float((np.log(mixture.given) + np.log(log.n_arms)).mean()),
    )


@dataclass(frozen=True, kw_only=True)
class Steadiness:
    """Whether one policy explains all rounds."""

    z: float
    """How many standard errors stretches follow those before them, by the memory for which that is most."""
    p_value: float
    """Of that, corrected for the number of memories."""
    share: float
    """What following the movement would add to the prediction of picks, as a part of what the policy predicts."""


def find_steadiness(pull: Pull) -> Steadiness:
    """Test whether scores follow those before them."""
    from scipy.special import ndtr

    scores, n = pull.scores, len(pull.scores)
    size = float((scores**2).sum(axis=1).mean())
    found = []
    for memory in MEMORIES:
        keep = 1 - 1 / memory
        past = _fading_sums(scores, keep)
        weight = (1 - keep ** np.arange(n)) * memory
        # Scores sum to zero, so that two of them are negatively related by chance.
        products = (scores * past).sum(axis=1) + weight * size / n
        error = float(np.sqrt((products**2).sum()))
        found.append(float(products.sum()) / error if error else 0.0)
    z = max(found)
    near = float((scores[1:] * scores[:-1]).sum(axis=1).mean()) + size / n
    rounds = float(np.diff(pull.bounds).mean())
    share = near / rounds**2 / 2 / pull.gain if pull.gain > 0 else 0.0
    return Steadiness(z=z, p_value=min(1.0, len(MEMORIES) * float(ndtr(-z))), share=share)


def _fading_sums(values: Matrix, keep: float) -> Matrix:
    """Sum of the values before each, in which one counts `keep` times as much as the one after it."""
    sums = np.zeros_like(values)
    for t in range(1, len(values)):
        sums[t] = values[t - 1] + keep * sums[t - 1]
    return sums


@dataclass(frozen=True, kw_only=True)
class GivenUp:
    """The place at which the past is most unlike the future, compared with how unlike it was to its own past."""

    z: float
    """Step at that place less the step before, in standard errors."""
    p_value: float
    """Chance of one as large, at any place, if one policy made all picks."""
    critical: float
    """The step in standard errors that chance exceeds in one log of twenty."""
    share: float
    """What the step costs the policy before it, as a part of what a policy predicts."""
    round: int
    """First round after the step."""

    @property
    def matters(self) -> bool:
        """Whether the step is large, or smaller and clear."""
        return any(self.share >= cost and self.z >= times * self.critical for cost, times in CLEAR)


def find_given_up(pull: Pull) -> GivenUp:
    """Compare past and future at many places; only steps that are material count.

    Around each place stand three stretches of the same length: two before it, one after. The squared distance between
    the last two, less that between the first two, is estimated without bias by products of different stretches. Its
    distribution if one policy made all picks follows from changing the signs of whole stretches at random.
    """
    bounds = pull.bounds[np.unique(_cuts(len(pull.scores), min(PIECES, len(pull.scores))))]
    places = np.searchsorted(pull.bounds, bounds[:-1])
    scores = np.add.reduceat(pull.scores, places, axis=0)
    n, products = len(scores), scores @ scores.T
    np.fill_diagonal(products, 0.0)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (n, DRAWS))
    per_round = float(np.diff(bounds).mean()) ** -2 / 2
    null, found = np.full(DRAWS, -np.inf), []
    for place in np.unique(np.linspace(2 * LEAST_PART * n, (1 - LEAST_PART) * n, PLACES).astype(int)).tolist():
        size = min(place // 2, n - place)
        if size < max(2, LEAST_PART * n - 1):
            continue
        terms = _contrast(n, place, size) * products
        error = float(np.sqrt(2 * (terms**2).sum()))
        if not error:
            continue
        step = float(terms.sum())
        null = np.maximum(null, ((terms @ signs) * signs).sum(axis=0) / error)
        found.append((step / error, step * per_round / pull.gain if pull.gain > 0 else 0.0, int(bounds[place])))
    material = [one for one in found if one[1] >= LEAST_COST] or found or [(0.0, 0.0, 0)]
    z, share, place = max(material)
    # Signs that leave the stretches as they are give the same z, but for rounding.
    p_value = float((1 + np.count_nonzero(null >= z - SAME * abs(z))) / (1 + DRAWS))
    critical = float(np.quantile(null, 0.95)) if found else np.inf
    return GivenUp(z=z, p_value=p_value, critical=critical, share=share, round=place)


def _contrast(n: int, place: int, size: int) -> Matrix:
    """What each product counts for: the step at a place less the step before it."""
    older, recent, after = (slice(place + shift * size, place + (shift + 1) * size) for shift in (-2, -1, 0))
    found, pairs = np.zeros((n, n)), size * (size - 1)
    found[after, after] += 1 / pairs
    found[older, older] -= 1 / pairs
    for one, other, sign in ((older, recent, 1.0), (recent, after, -1.0)):
        found[one, other] += sign / size**2
        found[other, one] += sign / size**2
    return found


def _cuts(n: int, parts: int) -> Index:
    return np.asarray(np.linspace(0, n, parts + 1).astype(np.int64))


def part_of(others: Matrix, log: BanditLog, start: int, stop: int | None = None) -> Matrix:
    """The columns of `other_ways(log)` that belong to some rounds."""
    end = log.n_rounds if stop is None else stop
    return others[:, log.offsets[start] : log.offsets[end]]
