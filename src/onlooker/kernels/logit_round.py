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
from onlooker.kernels.lanes import (
    LANES,
    above,
    aligned,
    all_of,
    exp,
    first_of,
    larger,
    largest,
    load,
    root,
    store,
    sums,
    total,
    whole_lanes,
)

MODERATION = math.pi / 8.0
"""How much the variance of a score flattens its logit: the usual probit approximation of a logistic's mean."""
CLOSELY = 6
"""So many of the best arms, and all that are nearly as good, have the variance of their scores computed."""
NEARLY = 1e-3
"""Share of the best arm's probability from which on an arm is nearly as good."""
LEAST = 5e-4
"""Share of random picks that is always allowed for: without any, one odd pick would break the filter."""
TOGETHER = 4
"""Observations that are taken in together: the spread is gone through twice for all of them."""
SKIPPED = 1e-2
"""Arms are left out of the information when they hold less than this share of what a random pick would."""

# Sums keep their order: parts of a log, wherever they lie in memory, give the same to the last bit as the whole.
compiled = cached_njit(error_model="numpy")
# A product may be added without rounding it first: the same wherever a number lies.
_fused = cached_njit(error_model="numpy", fastmath={"contract"})
# Sums may be taken in wide registers: their order depends on the number of features, or of arms, alone.
_sums = cached_njit(error_model="numpy", fastmath={"reassoc", "contract"})


class Room(NamedTuple):
    """Scratch space for one round; with a full spread, rows of it are padded to whole lanes."""

    scores: Vector
    shares: Vector
    flats: Vector
    """How much each arm's logit is flattened."""
    centre: Vector
    direction: Vector
    product: Vector
    information: Matrix
    """Of shape (d + 1, d + 1), padded, for a full spread; for a diagonal one, what each arm tells."""
    slope: Vector
    columns: Matrix
    """Features of the arms, a row a feature, for a full spread as all that follows."""
    turned: Matrix
    """The same of arms that count, less their centre; then what they tell."""
    kept: Index
    """Those arms."""
    along: Matrix
    """Directions of observations that are taken in together, and what the spread makes of them; shape (12, d + 1)."""
    few: Vector
    """Numbers of those."""


@compiled
def room(offsets: Index, d: int, dimensions: int) -> Room:
    """Scratch space for the widest of the rounds; the spread has so many dimensions, one if it is a diagonal."""
    n_arms = 1
    for t in range(len(offsets) - 1):
        n_arms = max(n_arms, offsets[t + 1] - offsets[t])
    n, wide, full = n_arms, d + 1, dimensions > 1
    if full:
        # Quadratic forms are found for sixteen arms at a time.
        n, wide = whole_lanes(n_arms) + LANES, whole_lanes(d + 1)
    some = n if full else 0
    return Room(
        aligned(n),
        aligned(n),
        aligned(n),
        aligned(wide if full else d),
        aligned(wide if full else d),
        aligned(wide),
        aligned((wide if full else n_arms) * wide).reshape((wide if full else n_arms, wide)),
        aligned(wide),
        aligned(wide * some).reshape((wide, some)),
        aligned(wide * some).reshape((wide, some)),
        np.empty(some, dtype=np.int64),
        aligned(3 * TOGETHER * wide).reshape((3 * TOGETHER, wide)),
        aligned(2 * LANES),
    )


@compiled
def padded(spread: Vector | Matrix) -> Vector | Matrix:
    """A copy whose rows are padded to whole lanes with zeros, as its columns are; of a diagonal, a copy."""
    if spread.ndim == 1:
        return spread.copy()
    wide = whole_lanes(len(spread))
    found = aligned(wide * wide).reshape((wide, wide))
    pad(spread, found)
    return found


@compiled
def pad(spread: Vector | Matrix, out: Vector | Matrix) -> None:
    """Fill what `padded` gives."""
    if spread.ndim == 1:
        out[:] = spread
    else:
        out[: len(spread), : len(spread)] = spread


@compiled
def unpad(spread: Vector | Matrix, out: Vector | Matrix) -> None:
    """Fill what was padded."""
    if spread.ndim == 1:
        out[:] = spread
    else:
        out[:] = spread[: len(out), : len(out)]


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
def _quadratic_forms(spread: Matrix, turned: Matrix, d: int, n: int, forms: Vector) -> None:
    """Fill `x' spread x` of n columns x of `turned`, of its first d rows; both have rows of zeros after these.

    Four rows at a time, each pair of rows once: those of the block itself count half, and all count twice in the end.
    """
    step, two = turned.shape[1], all_of(2.0)
    for k in range(0, n, 2 * LANES):
        form, later = all_of(0.0), all_of(0.0)
        for i in range(0, d, 4):
            a, b, c, e = all_of(0.0), all_of(0.0), all_of(0.0), all_of(0.0)
            f, g, h, o = all_of(0.0), all_of(0.0), all_of(0.0), all_of(0.0)
            for j in range(i, i + 4):
                x, y = load(turned, j * step + k), load(turned, j * step + k + LANES)
                w = all_of(0.5 * spread[i, j])
                a, f = a + w * x, f + w * y
                w = all_of(0.5 * spread[i + 1, j])
                b, g = b + w * x, g + w * y
                w = all_of(0.5 * spread[i + 2, j])
                c, h = c + w * x, h + w * y
                w = all_of(0.5 * spread[i + 3, j])
                e, o = e + w * x, o + w * y
            for j in range(i + 4, d):
                x, y = load(turned, j * step + k), load(turned, j * step + k + LANES)
                w = all_of(spread[i, j])
                a, f = a + w * x, f + w * y
                w = all_of(spread[i + 1, j])
                b, g = b + w * x, g + w * y
                w = all_of(spread[i + 2, j])
                c, h = c + w * x, h + w * y
                w = all_of(spread[i + 3, j])
                e, o = e + w * x, o + w * y
            at = i * step + k
            form = form + a * load(turned, at) + b * load(turned, at + step)
            form = form + c * load(turned, at + 2 * step) + e * load(turned, at + 3 * step)
            at += LANES
            later = later + f * load(turned, at) + g * load(turned, at + step)
            later = later + h * load(turned, at + 2 * step) + o * load(turned, at + 3 * step)
        store(forms, k, two * form)
        store(forms, k + LANES, two * later)


@_fused
def _cross(turned: Matrix, n: int, count: int, out: Matrix) -> None:
    """Fill the upper triangle of the cross-products of `count` rows of `turned`, of its first n columns, and more."""
    wide, step = out.shape[1], turned.shape[1]
    for j in range(count):
        for i in range(j // LANES * LANES, wide, LANES):
            a, b, c, d = all_of(0.0), all_of(0.0), all_of(0.0), all_of(0.0)
            e, f, g, h = all_of(0.0), all_of(0.0), all_of(0.0), all_of(0.0)
            for k in range(0, n, LANES):
                x, at = load(turned, j * step + k), i * step + k
                a, b = a + x * load(turned, at), b + x * load(turned, at + step)
                c, d = c + x * load(turned, at + 2 * step), d + x * load(turned, at + 3 * step)
                e, f = e + x * load(turned, at + 4 * step), f + x * load(turned, at + 5 * step)
                g, h = g + x * load(turned, at + 6 * step), h + x * load(turned, at + 7 * step)
            store(out, j * wide + i, sums(a, b, c, d, e, f, g, h))


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


@_fused
def _turn(rows: Features, columns: Matrix) -> None:
    """Fill the features of the arms, a row a feature, and zeros up to whole lanes."""
    n, d = rows.shape
    for k in range(n):
        for j in range(d):
            columns[j, k] = rows[k, j]
    for j in range(d):
        for k in range(n, whole_lanes(n)):
            columns[j, k] = 0.0


@_fused
def _fill_scores(columns: Matrix, mean: Vector, n: int, d: int, scores: Vector) -> None:
    step = columns.shape[1]
    for k in range(0, n, LANES):
        found = all_of(0.0)
        for j in range(d):
            found = found + all_of(mean[j]) * load(columns, j * step + k)
        store(scores, k, first_of(n - k, found, all_of(-np.inf)))


@_fused
def _softmax(scores: Vector, n: int, out: Vector) -> None:
    """Softmax of n scores; those after them in the last lanes are minus infinity."""
    top, every = load(scores, 0), all_of(0.0)
    for k in range(LANES, n, LANES):
        top = larger(top, load(scores, k))
    top = all_of(largest(top))
    for k in range(0, n, LANES):
        found = exp(load(scores, k) - top)
        every = every + found
        store(out, k, found)
    scale = all_of(1.0 / total(every))
    for k in range(0, n, LANES):
        store(out, k, load(out, k) * scale)


@_fused
def _worth_computing(shares: Vector, n: int) -> float:
    """The least probability from which on the variance of an arm's score is computed."""
    top, count, one = load(shares, 0), all_of(0.0), all_of(1.0)
    for k in range(LANES, n, LANES):
        top = larger(top, load(shares, k))
    near = NEARLY * largest(top)
    for k in range(0, n, LANES):
        count = count + above(load(shares, k), all_of(near), one)
    if total(count) >= CLOSELY:
        return float(near)
    # The next best, one after the other; equal ones count each.
    least = np.inf
    for _ in range(CLOSELY):
        top, below, bound = all_of(0.0), all_of(0.0), all_of(least)
        for k in range(0, n, LANES):
            here = load(shares, k)
            top = larger(top, above(bound, here, here))
        least = largest(top)
        for k in range(0, n, LANES):
            below = below + above(all_of(least), load(shares, k), one)
        if whole_lanes(n) - total(below) >= CLOSELY:
            break
    return float(min(least, near))


@_fused
def _fill_centre(columns: Matrix, weights: Vector, n: int, centre: Vector, out: Vector) -> None:
    """Fill the sum of the arms' features less a centre, each times its weight, a weight of 0 for none."""
    step = columns.shape[1]
    for j in range(0, len(out), LANES):
        a, b, c, d = all_of(0.0), all_of(0.0), all_of(0.0), all_of(0.0)
        e, f, g, h = all_of(0.0), all_of(0.0), all_of(0.0), all_of(0.0)
        for k in range(0, n, LANES):
            x, at = load(weights, k), j * step + k
            a = a + x * (load(columns, at) - all_of(centre[j]))
            b = b + x * (load(columns, at + step) - all_of(centre[j + 1]))
            c = c + x * (load(columns, at + 2 * step) - all_of(centre[j + 2]))
            d = d + x * (load(columns, at + 3 * step) - all_of(centre[j + 3]))
            e = e + x * (load(columns, at + 4 * step) - all_of(centre[j + 4]))
            f = f + x * (load(columns, at + 5 * step) - all_of(centre[j + 5]))
            g = g + x * (load(columns, at + 6 * step) - all_of(centre[j + 6]))
            h = h + x * (load(columns, at + 7 * step) - all_of(centre[j + 7]))
        store(out, j, sums(a, b, c, d, e, f, g, h))


@_fused
def _gather(columns: Matrix, centre: Vector, shares: Vector, n: int, d: int, least: float, at: Room) -> int:
    """Fill the features less their centre of the arms with at least this share, and which they are; count them."""
    turned, kept, step, count = at.turned, at.kept, columns.shape[1], 0
    for k in range(n):
        kept[count] = k
        count += shares[k] >= least
    if count == n:
        for j in range(d):
            middle = all_of(centre[j])
            for k in range(0, n, LANES):
                store(turned, j * step + k, load(columns, j * step + k) - middle)
        return count
    for j in range(d):
        for k in range(count):
            turned[j, k] = columns[j, kept[k]] - centre[j]
    return count


@_fused
def _moderate_full(rows: Features, mean: Vector, spread: Matrix, at: Room) -> None:
    n, d = rows.shape
    scores, shares, flats = at.scores, at.shares, at.flats
    _turn(rows, at.columns)
    _fill_scores(at.columns, mean, n, d, scores)
    _softmax(scores, n, shares)
    at.slope[:] = 0.0
    _fill_centre(at.columns, shares, n, at.slope, at.centre)
    middle = _score(at.centre[:d], mean)
    count = _gather(at.columns, at.centre, shares, n, d, _worth_computing(shares, n), at)
    # The shares are made again below: until then they are room for the quadratic forms.
    forms, flattest, one = shares, 1.0, all_of(1.0)
    _quadratic_forms(spread, at.turned, d, count, forms)
    for k in range(0, count, LANES):
        found = larger(load(forms, k), all_of(0.0))
        store(forms, k, one / root(one + all_of(MODERATION) * found))
    for k in range(count):
        flattest = min(flattest, forms[k])
    if count == n:
        for k in range(0, n, LANES):
            store(flats, k, load(forms, k))
    else:
        for k in range(0, n, LANES):
            store(flats, k, all_of(flattest))
        for k in range(count):
            flats[at.kept[k]] = forms[k]
    for k in range(0, n, LANES):
        found = load(flats, k) * (load(scores, k) - all_of(middle))
        store(scores, k, first_of(n - k, found, all_of(-np.inf)))
    _softmax(scores, n, shares)


@_fused
def flattened(rows: Features, mean: Vector, flats: Vector, at: Room) -> None:
    """What `moderated` fills for a covariance, where it is known how much each arm's logit is flattened."""
    n, d = rows.shape
    scores, shares = at.scores, at.shares
    _turn(rows, at.columns)
    _fill_scores(at.columns, mean, n, d, scores)
    _softmax(scores, n, shares)
    at.slope[:] = 0.0
    _fill_centre(at.columns, shares, n, at.slope, at.centre)
    middle = _score(at.centre[:d], mean)
    for k in range(whole_lanes(n)):
        at.flats[k] = flats[k] if k < n else 1.0
    for k in range(0, n, LANES):
        found = load(at.flats, k) * (load(scores, k) - all_of(middle))
        store(scores, k, first_of(n - k, found, all_of(-np.inf)))
    _softmax(scores, n, shares)


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
    # The dimensions of an argument are known when this is compiled: one branch is left.
    if spread.ndim == 2:
        _moderate_full(rows, mean, spread, at)
        return
    n = len(rows)
    scores, shares, flats = at.scores[:n], at.shares[:n], at.flats[:n]
    for k in range(n):
        scores[k] = _score(rows[k], mean)
    _normalise(scores, shares)
    _centre(rows, shares, at.centre)
    middle = _score(at.centre, mean)
    for k in range(n):
        flats[k] = 1.0 / math.sqrt(1.0 + MODERATION * _variance(rows[k], at.centre, spread))
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
def _shrink(spread: Matrix, n: int, first: int, at: Room) -> None:
    """Take in four observations, one after the other, along the first rows of `at.along`, with variances `at.few`.

    Entries of these before `first` and from n on are 0. What one of them leaves is the same as if it were taken in
    alone; but the spread is gone through twice for all of them.
    """
    along, few, wide = at.along, at.few, spread.shape[1]
    aa, ba, bb, ca, cb = all_of(0.0), all_of(0.0), all_of(0.0), all_of(0.0), all_of(0.0)
    cc, da, db, dc, dd = all_of(0.0), all_of(0.0), all_of(0.0), all_of(0.0), all_of(0.0)
    for i in range(0, wide, LANES):
        a, b, c, d = all_of(0.0), all_of(0.0), all_of(0.0), all_of(0.0)
        for j in range(first, n):
            x = load(spread, j * wide + i)
            a, b = a + all_of(along[0, j]) * x, b + all_of(along[1, j]) * x
            c, d = c + all_of(along[2, j]) * x, d + all_of(along[3, j]) * x
        x = load(along, i)
        aa = aa + x * a
        x = load(along, wide + i)
        ba, bb = ba + x * a, bb + x * b
        x = load(along, 2 * wide + i)
        ca, cb, cc = ca + x * a, cb + x * b, cc + x * c
        x = load(along, 3 * wide + i)
        da, db, dc, dd = da + x * a, db + x * b, dc + x * c, dd + x * d
        store(along, 4 * wide + i, a)
        store(along, 5 * wide + i, b)
        store(along, 6 * wide + i, c)
        store(along, 7 * wide + i, d)
    first_noise, second_noise, third_noise, fourth_noise = few[0], few[1], few[2], few[3]
    store(few, 0, sums(aa, ba, bb, ca, cb, cc, da, db))
    store(few, LANES, sums(dc, dd, dd, dd, dd, dd, dd, dd))
    g10, g20, g21, g30, g31, g32 = few[1], few[3], few[4], few[6], few[7], few[8]
    scale0 = 1.0 / (first_noise + few[0])
    l10, l20, l30 = g10 * scale0, g20 * scale0, g30 * scale0
    scale1 = 1.0 / (second_noise + (few[2] - l10 * g10))
    g21, g31 = g21 - l20 * g10, g31 - l30 * g10
    l21, l31 = g21 * scale1, g31 * scale1
    scale2 = 1.0 / (third_noise + (few[5] - l20 * g20 - l21 * g21))
    g32 = g32 - l30 * g20 - l31 * g21
    l32 = g32 * scale2
    scale3 = 1.0 / (fourth_noise + (few[9] - l30 * g30 - l31 * g31 - l32 * g32))
    for i in range(0, wide, LANES):
        a, b = load(along, 4 * wide + i), load(along, 5 * wide + i)
        c, d = load(along, 6 * wide + i), load(along, 7 * wide + i)
        b = b - all_of(l10) * a
        c = c - all_of(l20) * a - all_of(l21) * b
        d = d - all_of(l30) * a - all_of(l31) * b - all_of(l32) * c
        store(along, 4 * wide + i, a)
        store(along, 5 * wide + i, b)
        store(along, 6 * wide + i, c)
        store(along, 7 * wide + i, d)
        store(along, 8 * wide + i, a * all_of(scale0))
        store(along, 9 * wide + i, b * all_of(scale1))
        store(along, 10 * wide + i, c * all_of(scale2))
        store(along, 11 * wide + i, d * all_of(scale3))
    for i in range(0, wide, LANES):
        a, b = load(along, 4 * wide + i), load(along, 5 * wide + i)
        c, d = load(along, 6 * wide + i), load(along, 7 * wide + i)
        for j in range(n):
            x = load(spread, j * wide + i)
            x = x - all_of(along[8, j]) * a - all_of(along[9, j]) * b
            x = x - all_of(along[10, j]) * c - all_of(along[11, j]) * d
            store(spread, j * wide + i, x)


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


@_fused
def _fill_told(n: int, d: int, random: float, least: float, at: Room) -> int:
    """Fill what each arm with more than a share of `least` tells, in columns of `at.turned`; count the columns.

    Arms that tell nothing have zeros, or are left out where all of their lanes do.
    """
    turned, columns, step, count = at.turned, at.columns, at.turned.shape[1], 0
    chance, change = all_of(random / n), all_of(random * (1.0 - random))
    for k in range(0, n, LANES):
        share = load(at.shares, k)
        if largest(share) <= least:
            continue
        probability = all_of(1.0 - random) * share + chance
        weight = above(share, all_of(least), all_of(1.0) / root(probability))
        follows, flat = weight * all_of(1.0 - random) * share, load(at.flats, k)
        for j in range(d):
            moved = flat * (load(columns, j * step + k) - all_of(at.centre[j])) - all_of(at.direction[j])
            store(turned, j * step + count, follows * moved)
        store(turned, d * step + count, weight * change * (all_of(1.0 / n) - share))
        count += LANES
    return count


@_fused
def _learn_full(rows: Features, pick: int, mean: Vector, spread: Matrix, at: Room) -> None:
    """For a covariance. Arms that are hardly ever picked but at random tell of the share of these alone."""
    n, d = rows.shape
    random, least, shares = random_share(mean), SKIPPED / n, at.shares
    for k in range(0, n, LANES):
        store(at.scores, k, load(shares, k) * load(at.flats, k))
    _fill_centre(at.columns, at.scores, n, at.centre, at.direction)
    counts, aside, one = all_of(0.0), all_of(0.0), all_of(1.0)
    for k in range(0, n, LANES):
        share = load(shares, k)
        counts = counts + above(share, all_of(least), one)
        off = all_of(random * (1.0 - random)) * (all_of(1.0 / n) - share)
        told = off * off / (all_of(1.0 - random) * share + all_of(random / n))
        aside = aside + first_of(n - k, told - above(share, all_of(least), told), all_of(0.0))
    count, rest = total(counts), total(aside)
    if count > d:
        told = _fill_told(n, d, random, least, at)
        _cross(at.turned, told, d + 1, at.information)
        at.information[d, d] += rest
        # No feature: zeros again, as quadratic forms have it.
        at.turned[d] = 0.0
        _shrink_by_factor(spread, d + 1, at)
    else:
        place = 0
        for k in range(n):
            if shares[k] > least:
                at.few[place] = 1.0 / _slope(rows, k, random, at, at.along[place])
                place += 1
                if place == TOGETHER:
                    _shrink(spread, d + 1, 0, at)
                    place = 0
        if rest > 0.0:
            at.along[place] = 0.0
            at.along[place, d], at.few[place] = 1.0, 1.0 / rest
            place += 1
        if place > 0:
            for empty in range(place, TOGETHER):
                at.along[empty] = 0.0
                at.few[empty] = 1.0
            _shrink(spread, d + 1, 0, at)
    _slope(rows, pick, random, at, at.slope)
    wide = spread.shape[1]
    for i in range(0, wide, LANES):
        found = all_of(0.0)
        for j in range(d + 1):
            found = found + all_of(at.slope[j]) * load(spread, j * wide + i)
        store(at.product, i, found)
    for j in range(d + 1):
        mean[j] += at.product[j]


@_fused
def _shrink_by_factor(spread: Matrix, n: int, at: Room) -> None:
    """Take in a whole information matrix, given by its upper triangle, by its factors."""
    information, along, wide, least = at.information, at.along, spread.shape[1], 0.0
    for i in range(n):
        least = max(least, 1e-12 * information[i, i])
    for first in range(0, n, TOGETHER):
        for place in range(TOGETHER):
            c = first + place
            if c >= n or information[c, c] <= least:
                along[place] = 0.0
                at.few[place] = 1.0
                continue
            at.few[place] = information[c, c]
            start = c // LANES * LANES
            for i in range(0, start, LANES):
                store(along, place * wide + i, all_of(0.0))
            for i in range(start, wide, LANES):
                store(along, place * wide + i, load(information, c * wide + i))
            for i in range(start, c):
                along[place, i] = 0.0
            scale = 1.0 / information[c, c]
            for i in range(c + 1, n):
                weight = all_of(scale * along[place, i])
                for j in range(i // LANES * LANES, wide, LANES):
                    rest = load(information, i * wide + j) - weight * load(along, place * wide + j)
                    store(information, i * wide + j, rest)
        _shrink(spread, n, first, at)


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
