"""Whether what a learner values moves: what one fixed policy leaves unexplained, followed over time.

In each short stretch of rounds the score of the likelihood says in which direction the picks pull the weights of one
fixed policy. While that policy is at work, what a stretch adds has mean zero given everything before it, whatever is
on offer. So two questions can be asked of the products of such scores, with errors taken from the products themselves:

- Do stretches pull the same way as those shortly before them? Then the weights move (`Steadiness`).
- Do rounds resemble their past more than their future? A learner that settles resembles its future: its steps get
  smaller and smaller. Where the step ahead is larger than the one behind, something learned was given up (`GivenUp`).

Where the answers say that the learner changed its mind, the round is located (`Change`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from onlooker.base.defaults import L2
from onlooker.base.numerics import UNIDENTIFIED, Curvature
from onlooker.base.types import Index, Matrix, Vector
from onlooker.imitation.newton import Fit, minimise
from onlooker.imitation.softmax import SoftmaxObjective, round_losses
from onlooker.imitation.stretches import FAST, LEAST_WEIGHT, Mixture, explain, fit_policy
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
    >>> from onlooker.imitation.stretches import other_ways
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


MOST_EVIDENCE = 1.0
"""No single round counts for more than this (in nats) when the change is located.

A learner that starts again explores for some rounds, which neither policy explains: taken at face value, a few of them
gave intervals one round wide that missed the change by two to eight (seen on LinUCB restarted half-way).
"""

NEAR = 0.15
"""The change is looked for within this part of the rounds around the place where past and future differ most."""

LEAST_TESTED, LEAST_PER_DIRECTION = 200, 10
"""Rounds that movement is looked for in: at least so many, and so many for every direction of theta."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Change:
    """Whether one policy made the picks of some rounds, and where not, when the last of several took over."""

    pull: Pull
    """What one policy leaves unexplained."""

    steadiness: Steadiness
    """Whether there is anything to explain."""

    given_up: GivenUp
    """The strongest sign that something was given up."""

    found: bool
    """Whether there was a change that matters."""

    round: int = 0
    """First round after the change."""

    low: int = 0
    """Lower end of its interval."""

    high: int = 0
    """Upper end."""


def enough(n_rounds: int, rank: int) -> bool:
    """Whether so many rounds are enough to look for movement."""
    return n_rounds >= max(LEAST_TESTED, LEAST_PER_DIRECTION * rank)


def find_change(log: BanditLog, others: Matrix, level: float, near: Fit | None = None) -> Change:
    """Test for a change, and locate it where there is one."""
    pull = find_pull(log, others, near)
    steadiness, given_up = find_steadiness(pull), find_given_up(pull)
    found = max(steadiness.p_value, given_up.p_value) < 1 - level and given_up.matters
    if not found:
        return Change(pull=pull, steadiness=steadiness, given_up=given_up, found=False)
    place, low, high = _locate(log, pull, given_up.round, level)
    return Change(pull=pull, steadiness=steadiness, given_up=given_up, found=True, round=place, low=low, high=high)


def find_changes(log: BanditLog, others: Matrix, rank: int, level: float) -> tuple[Change, list[Change]]:
    """What was found on the whole log; and all changes by their rounds, from the first that stands out on.

    After each change the rounds that follow are looked at alone, so that the last one is the last.
    """
    whole = find_change(log, others, level)
    changes, start, last = [], 0, whole
    while last.found:
        changes.append(_moved(last, start))
        start = changes[-1].round
        if not enough(log.n_rounds - start, rank):
            break
        last = find_change(log[start:], part_of(others, log, start), level, last.pull.fit)
    if changes and enough(changes[0].round, rank):
        first = find_change(log[: changes[0].round], part_of(others, log, 0, changes[0].round), level, whole.pull.fit)
        changes = [*([first] if first.found else []), *changes]
    return whole, changes


def _moved(change: Change, start: int) -> Change:
    return Change(
        pull=change.pull,
        steadiness=change.steadiness,
        given_up=change.given_up,
        found=True,
        round=start + change.round,
        low=start + change.low,
        high=start + change.high,
    )


def _locate(log: BanditLog, pull: Pull, near: int, level: float) -> tuple[int, int, int]:
    """First round after the change with its interval: where the policy before it stops to explain the picks."""
    weights = np.maximum(pull.mixture.own, LEAST_WEIGHT)
    reach = max(1, round(NEAR * log.n_rounds))
    start, stop = max(1, near - reach), min(log.n_rounds, near + reach)
    before, after = max(1, near - reach // 3), min(log.n_rounds - 1, near + reach // 3)
    place = low = high = near
    # The second time, the policies are those of the rounds on either side of the place found.
    for _ in range(2):
        old, new = (
            minimise(SoftmaxObjective(log[part], l2=L2, weights=weights[part]), pull.fit, tolerance=FAST).theta
            for part in (slice(0, before), slice(after, log.n_rounds))
        )
        part = log[start:stop]
        evidence = np.clip(round_losses(part, new) - round_losses(part, old), -MOST_EVIDENCE, MOST_EVIDENCE)
        loss = -np.cumsum(evidence)
        place, low, high = (start + 1 + place for place in _posterior(loss, level))
        before, after = min(max(1, place), log.n_rounds - 1), min(place, log.n_rounds - 1)
    return place, low, high


def _posterior(loss: Vector, level: float) -> tuple[int, int, int]:
    """Most likely place of the change and its interval, all places being equally likely beforehand."""
    weights = np.exp(loss.min() - loss)
    mass = np.cumsum(weights) / weights.sum()
    tail = (1 - level) / 2
    low, high = np.searchsorted(mass, [tail, 1 - tail])
    best = int(loss.argmin())
    return best, min(best, int(low)), max(best, int(high))
