"""One round of a conditional logit whose weights are uncertain: what an arm's probability is, and what a pick teaches.

Rows are the features of the offered arms less their round's mean, in units of their spread within rounds. What is
believed is about the weights and, last, the logit of the share of random picks: a mean of shape (d + 1,), and a spread
that is a covariance of shape (d + 1, d + 1) or, for many features, its diagonal.
"""

import math
from typing import NamedTuple

import numpy as np

from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.kernels.cached_njit import cached_njit

MODERATION = math.pi / 8.0
"""How much the variance of a score flattens its logit: the usual probit approximation of a logistic's mean."""
CLOSELY = 6
"""So many of the best arms, and all that are nearly as good, have the variance of their scores computed."""
NEARLY = 1e-3
"""Share of the best arm's probability from which on an arm is nearly as good."""
LEAST = 5e-4
"""Share of random picks that is always allowed for: without any, one odd pick would break the filter."""
SKIPPED = 1e-2
"""Arms are left out of the information when they hold less than this share of what a random pick would."""

# Sums keep their order: parts of a log, wherever they lie in memory, give the same to the last bit as the whole.
compiled = cached_njit(error_model="numpy")
# A product may be added without rounding it first: the same wherever a number lies.
_fused = cached_njit(error_model="numpy", fastmath={"contract"})
# Sums may be taken in wide registers: their order depends on the number of features, or of arms, alone.
_sums = cached_njit(error_model="numpy", fastmath={"reassoc", "contract"})


class Room(NamedTuple):
    """Scratch space for one round."""

    scores: Vector
    shares: Vector
    flats: Vector
    """How much each arm's logit is flattened."""
    centre: Vector
    direction: Vector
    product: Vector
    information: Matrix
    """Of shape (d + 1, d + 1) for a full spread; for a diagonal one, what each arm tells."""
    best: Vector
    slope: Vector
    turned: Matrix
    """Features of arms that count, a row a feature: shape (d + 1, n); empty for a diagonal spread."""
    forms: Matrix
    """Of arms that count, and what is needed to find them: shape (2, n)."""


@compiled
def room(offsets: Index, d: int, side: int) -> Room:
    """Scratch space for the widest of the rounds; `side` is that of an information matrix, 0 for one row per arm."""
    n_arms = 1
    for t in range(len(offsets) - 1):
        n_arms = max(n_arms, offsets[t + 1] - offsets[t])
    return Room(
        np.empty(n_arms),
        np.empty(n_arms),
        np.empty(n_arms),
        np.empty(d),
        np.empty(d),
        np.empty(d + 1),
        np.empty((side or n_arms, d + 1)),
        np.empty(CLOSELY),
        np.empty(d + 1),
        np.empty((d + 1 if side else 0, n_arms)),
        np.empty((2, n_arms)),
    )


@_sums
def _score(row: Features, mean: Vector) -> float:
    total = 0.0
    for j in range(len(row)):
        total += row[j] * mean[j]
    return total


@_sums
def _variance(row: Features, centre: Vector, spread: Vector) -> float:
    """Of the difference of two rows' scores, for a diagonal spread."""
    total = 0.0
    for j in range(len(row)):
        difference = row[j] - centre[j]
        total += spread[j] * difference * difference
    return total


@_sums
def _weighted(vector: Vector, spread: Vector, product: Vector) -> float:
    """Fill a diagonal spread times a vector; return the quadratic form."""
    form = 0.0
    for j in range(len(vector)):
        product[j] = spread[j] * vector[j]
        form += product[j] * vector[j]
    return form


@_fused
def times(spread: Matrix, vector: Vector, n: int, product: Vector) -> float:
    """Fill the first n entries of `spread @ vector`, of which others are taken to be 0; return the quadratic form."""
    for i in range(n):
        product[i] = 0.0
    # Row by row, as the spread is symmetric: wide registers can be used without changing the order of a sum.
    for j in range(n):
        weight = vector[j]
        for i in range(n):
            product[i] += weight * spread[j, i]
    form = 0.0
    for i in range(n):
        form += product[i] * vector[i]
    return form


@_fused
def _quadratic_forms(spread: Matrix, turned: Matrix, d: int, n: int, form: Vector, half: Vector) -> None:
    """Fill `x' spread x` of n columns x of `turned`, of its first d rows, with the upper half of the spread."""
    form[:n] = 0.0
    for i in range(d):
        weight = 0.5 * spread[i, i]
        for k in range(n):
            half[k] = weight * turned[i, k]
        j = i + 1
        while j + 3 < d:
            first, second, third, fourth = spread[i, j], spread[i, j + 1], spread[i, j + 2], spread[i, j + 3]
            for k in range(n):
                half[k] += (first * turned[j, k] + second * turned[j + 1, k]) + (
                    third * turned[j + 2, k] + fourth * turned[j + 3, k]
                )
            j += 4
        while j < d:
            weight = spread[i, j]
            for k in range(n):
                half[k] += weight * turned[j, k]
            j += 1
        for k in range(n):
            form[k] += 2.0 * turned[i, k] * half[k]


@_sums
def _cross(turned: Matrix, n: int, out: Matrix) -> None:
    """Fill the lower triangle of the cross-products of the rows of `turned`, of its first n columns."""
    for i in range(len(turned)):
        for j in range(i + 1):
            total = 0.0
            for k in range(n):
                total += turned[i, k] * turned[j, k]
            out[i, j] = total


@compiled
def random_share(mean: Vector) -> float:
    """Share of random picks."""
    return max(LEAST, 1.0 / (1.0 + math.exp(-mean[len(mean) - 1])))


@compiled
def _normalise(scores: Vector, out: Vector) -> None:
    """Softmax."""
    top = scores[0]
    for k in range(1, len(scores)):
        top = max(top, scores[k])
    total = 0.0
    for k in range(len(scores)):
        out[k] = math.exp(scores[k] - top)
        total += out[k]
    for k in range(len(scores)):
        out[k] /= total


@compiled
def _worth_computing(probabilities: Vector, best: Vector) -> float:
    """The least probability from which on the variance of an arm's score is computed; `best` is scratch space."""
    best[:] = 0.0
    for k in range(len(probabilities)):
        place = len(best)
        while place > 0 and probabilities[k] > best[place - 1]:
            place -= 1
        if place < len(best):
            for later in range(len(best) - 1, place, -1):
                best[later] = best[later - 1]
            best[place] = probabilities[k]
    return float(min(best[len(best) - 1], NEARLY * best[0]))


@compiled
def _centre(rows: Features, probabilities: Vector, centre: Vector) -> None:
    """Fill the mean row under the probabilities."""
    centre[:] = 0.0
    for k in range(len(rows)):
        if probabilities[k] > 1e-12:
            for j in range(len(centre)):
                centre[j] += probabilities[k] * rows[k, j]


@compiled
def moderated(rows: Features, mean: Vector, spread: Vector | Matrix, at: Room) -> None:
    """Fill the mean over the belief of the arms' softmax probabilities, approximately, in `at.shares`.

    Scores are taken from their mean under the plain softmax, and each is flattened by the variance of that difference.
    """
    n, d = rows.shape
    scores, shares, flats = at.scores[:n], at.shares[:n], at.flats[:n]
    for k in range(n):
        scores[k] = _score(rows[k], mean)
    _normalise(scores, shares)
    _centre(rows, shares, at.centre)
    middle = _score(at.centre, mean)
    # The dimensions of an argument are known when this is compiled: one branch is left.
    if spread.ndim == 1:
        for k in range(n):
            flats[k] = 1.0 / math.sqrt(1.0 + MODERATION * _variance(rows[k], at.centre, spread))
    else:
        least = _worth_computing(shares, at.best)
        count, flattest = 0, 1.0
        for k in range(n):
            if shares[k] >= least:
                for j in range(d):
                    at.turned[j, count] = rows[k, j] - at.centre[j]
                count += 1
        variances = at.forms[0]
        _quadratic_forms(spread, at.turned, d, count, variances, at.forms[1])
        for k in range(count):
            variances[k] = 1.0 / math.sqrt(1.0 + MODERATION * max(variances[k], 0.0))
            flattest = min(flattest, variances[k])
        count = 0
        for k in range(n):
            flats[k] = flattest
            if shares[k] >= least:
                flats[k] = variances[count]
                count += 1
    for k in range(n):
        scores[k] = flats[k] * (scores[k] - middle)
    _normalise(scores, shares)


@compiled
def _flatten(rows: Features, at: Room) -> None:
    """Mean of the flattened rows, `flat * (row - centre)`, in `at.direction`: what they are taken from below."""
    at.direction[:] = 0.0
    for k in range(len(rows)):
        scale = at.shares[k] * at.flats[k]
        if scale > 1e-12:
            for j in range(len(at.centre)):
                at.direction[j] += scale * (rows[k, j] - at.centre[j])


@_fused
def _shrink(spread: Matrix, vector: Vector, product: Vector, first: int = 0) -> None:
    """Take in one observation along `vector`, of unit variance, of which the entries before `first` are 0."""
    n, form = len(vector), 1.0
    product[:n] = 0.0
    for j in range(first, n):
        weight = vector[j]
        for i in range(n):
            product[i] += weight * spread[j, i]
    for j in range(first, n):
        form += product[j] * vector[j]
    for i in range(n):
        scale = product[i] / form
        for j in range(n):
            spread[i, j] -= scale * product[j]


@compiled
def _slope(rows: Features, k: int, random: float, at: Room, slope: Vector) -> float:
    """Fill the gradient of the log-probability of arm k in weights and logit; return that probability."""
    n, d = rows.shape
    probability = (1.0 - random) * at.shares[k] + random / n
    follows = (1.0 - random) * at.shares[k] / probability
    for j in range(d):
        slope[j] = follows * (at.flats[k] * (rows[k, j] - at.centre[j]) - at.direction[j])
    slope[d] = random * (1.0 - random) * (1.0 / n - at.shares[k]) / probability
    return float(probability)


@compiled
def _learn_full(rows: Features, pick: int, mean: Vector, spread: Matrix, at: Room) -> None:
    """For a covariance. Arms that are hardly ever picked but at random tell of the share of these alone."""
    n, d = rows.shape
    random, least, count, aside = random_share(mean), SKIPPED / n, 0, 0.0
    _flatten(rows, at)
    for k in range(n):
        count += at.shares[k] > least
    full, count = count > d, 0
    for k in range(n):
        if at.shares[k] <= least:
            probability = (1.0 - random) * at.shares[k] + random / n
            aside += (random * (1.0 - random) * (1.0 / n - at.shares[k])) ** 2 / probability
            continue
        root = math.sqrt(_slope(rows, k, random, at, at.slope))
        for j in range(d + 1):
            at.slope[j] *= root
        if full:
            for j in range(d + 1):
                at.turned[j, count] = at.slope[j]
            count += 1
        else:
            _shrink(spread, at.slope, at.product)
    at.slope[:] = 0.0
    if full:
        _cross(at.turned, count, at.information)
        at.information[d, d] += aside
        _shrink_by_factor(spread, at.information, at.slope, at.product)
    elif aside > 0.0:
        at.slope[d] = math.sqrt(aside)
        _shrink(spread, at.slope, at.product)
    _slope(rows, pick, random, at, at.slope)
    times(spread, at.slope, d + 1, at.product)
    for j in range(d + 1):
        mean[j] += at.product[j]


@compiled
def _shrink_by_factor(spread: Matrix, information: Matrix, vector: Vector, product: Vector) -> None:
    """Take in a whole information matrix, given by its lower triangle, by the columns of its Cholesky factor."""
    n = len(vector)
    least = 0.0
    for i in range(n):
        least = max(least, 1e-12 * information[i, i])
    for c in range(n):
        pivot = information[c, c]
        vector[:] = 0.0
        if pivot <= least:
            continue
        root = math.sqrt(pivot)
        for i in range(c, n):
            vector[i] = information[i, c] / root
        for i in range(c + 1, n):
            for j in range(c + 1, i + 1):
                information[i, j] -= vector[i] * vector[j]
        _shrink(spread, vector, product, c)


@compiled
def _learn_diagonal(rows: Features, pick: int, mean: Vector, spread: Vector, at: Room) -> None:
    """For a diagonal: the best step along the scaled gradient, and what is left of each variance."""
    n, d = rows.shape
    random = random_share(mean)
    _flatten(rows, at)
    _slope(rows, pick, random, at, at.slope)
    form, bend = _weighted(at.slope, spread, at.product), 0.0
    for k in range(n):
        probability = _slope(rows, k, random, at, at.information[k])
        along = _score(at.product, at.information[k])
        bend += probability * along * along
        root = math.sqrt(probability)
        for j in range(d + 1):
            at.information[k, j] *= root
    for j in range(d + 1):
        mean[j] += at.product[j] * (form / (form + bend) if form > 0.0 else 0.0)
    for k in range(n):
        scale = 1.0 / (1.0 + _weighted(at.information[k], spread, at.product))
        for j in range(d + 1):
            spread[j] -= scale * at.product[j] * at.product[j]


@compiled
def learn(rows: Features, pick: int, mean: Vector, spread: Vector | Matrix, at: Room) -> None:
    """Move the belief by what a pick shows: its gradient, and the information that a pick is expected to give."""
    if spread.ndim == 1:
        _learn_diagonal(rows, pick, mean, spread, at)
    else:
        _learn_full(rows, pick, mean, spread, at)
