"""Follow weights that walk, from picks alone: one pass of an extended Kalman filter over a conditional logit.

Rows are the features of the offered arms less their round's mean, in units of their spread within rounds. A member of
the bank has a law of motion (`Law`) and a belief about the weights and, last, the logit of the share of random picks: a
mean of shape (d + 1,), and a spread that is a covariance of shape (d + 1, d + 1) or, for many features, its diagonal.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.kernels.cached_njit import cached_njit

HALF_LIFE = 100.0
"""Rounds after which steps that shrink with time are half as large."""
AGE = 10.0
"""Rounds that a learner that averages is thought to have seen before its first, in every direction."""
MODERATION = math.pi / 8.0
"""How much the variance of a score flattens its logit: the usual probit approximation of a logistic's mean."""
CLOSELY = 6
"""So many of the best arms, and all that are nearly as good, have the variance of their scores computed."""
NEARLY = 1e-3
"""Share of the best arm's probability from which on an arm is nearly as good."""
WANDERS = 1e-4
"""Variance that a round adds to the logit of the share of random picks: it may change, over some thousand rounds."""
LEAST = 5e-4
"""Share of random picks that is always allowed for: without any, one odd pick would break the filter."""
LARGE_MEAN = 2.0
"""Mean of a round's features, in units, beyond which it is left out of what was learned from."""
TIDIED = 64
"""At every so many rounds what rounding did to symmetry is undone."""
SKIPPED = 1e-2
"""Arms are left out of the information when they hold less than this share of what a random pick would."""

# Sums keep their order: parts of a log, wherever they lie in memory, give the same to the last bit as the whole.
_compiled = cached_njit(error_model="numpy")


class Law(NamedTuple):
    """How weights move between two rounds, as variance of an arm's score."""

    every: float
    """In every direction alike."""
    pick: float
    """In the direction of the last pick, as a learner does that learns from it."""
    surprise: float
    """There too, times the probability that the last pick was random: importance-weighted learners jump."""
    shrinks: float
    """1 where steps shrink in proportion to 1 / t, as with decaying rates; 0 where they do not."""
    averages: float
    """1 where they shrink with what was picked before in their direction, as ridge regression's do; 0 elsewhere."""
    reverts: float
    """Share of the way back to the static member's weights."""
    random: float
    """1 where some picks may be random; 0 where none are, so that every odd pick moves the weights."""


class Member(NamedTuple):
    """What one member of the bank believes; all of it is changed in place."""

    mean: Vector
    spread: Vector | Matrix
    """Covariance, or its diagonal."""
    last: Vector
    """The last pick as the learner saw it, and the probability that it was random; shape (d + 1,)."""
    inverse: Vector | Matrix
    """Of the sum of all picks' outer products, for a law that averages; else empty."""


class Record(NamedTuple):
    """What a member believed round by round: before each pick was seen, and after.

    Without rows nothing is recorded, with means alone only these. Spreads may have one more entry than there are
    rounds: the belief about the round that comes next.
    """

    means: Matrix
    spreads: NDArray[np.float64]
    """Shape (n, d, d) or (n, d)."""
    later_means: Matrix
    later_spreads: NDArray[np.float64]


@_compiled
def _score(row: Features, mean: Vector) -> float:
    total = 0.0
    for j in range(len(row)):
        total += row[j] * mean[j]
    return total


@_compiled
def _times(spread: Matrix, vector: Vector, n: int, product: Vector) -> float:
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


@_compiled
def random_share(mean: Vector) -> float:
    """Share of random picks."""
    return max(LEAST, 1.0 / (1.0 + math.exp(-mean[len(mean) - 1])))


@_compiled
def _variances(law: Law, round_number: int, gap: float, surprise: float) -> tuple[float, float]:
    """What a step adds in every direction, and in that of the last pick.

    A learner whose log has gaps went on to pick, nobody knows what: what is longer than a round goes everywhere.
    """
    size = HALF_LIFE / (HALF_LIFE + round_number) if law.shrinks > 0.0 else 1.0
    seen = min(gap, 1.0)
    return size * (gap * law.every + (gap - seen) * law.pick), seen * (size * law.pick + law.surprise * surprise)


@_compiled
def step_full(law: Law, round_number: int, gap: float, anchor: Vector, member: Member) -> None:
    """Let the weights move for as long as `gap`, counted in rounds, before round `round_number`."""
    d = len(member.mean) - 1
    spread = member.spread
    if law.reverts > 0.0:
        stays = math.exp(-law.reverts * gap)
        for i in range(d):
            member.mean[i] = anchor[i] + stays * (member.mean[i] - anchor[i])
            for j in range(d):
                spread[i, j] *= stays * stays
            spread[i, d] *= stays
            spread[d, i] *= stays
    every, along = _variances(law, round_number, gap, member.last[d])
    for i in range(d):
        spread[i, i] += every / d
        scale = along / d * member.last[i]
        if scale != 0.0:
            for j in range(d):
                spread[i, j] += scale * member.last[j]
    spread[d, d] += law.random * WANDERS
    if round_number % TIDIED == 0:
        for i in range(d + 1):
            for j in range(i):
                spread[i, j] = spread[j, i] = 0.5 * (spread[i, j] + spread[j, i])


@_compiled
def step_diagonal(law: Law, round_number: int, gap: float, anchor: Vector, member: Member) -> None:
    """The same for a diagonal spread."""
    d = len(member.mean) - 1
    stays = math.exp(-law.reverts * gap)
    every, along = _variances(law, round_number, gap, member.last[d])
    for j in range(d):
        if law.reverts > 0.0:
            member.mean[j] = anchor[j] + stays * (member.mean[j] - anchor[j])
            member.spread[j] *= stays * stays
        member.spread[j] += (every + along * member.last[j] * member.last[j]) / d
    member.spread[d] += law.random * WANDERS


@_compiled
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


@_compiled
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


@_compiled
def _centre(rows: Features, probabilities: Vector, centre: Vector) -> None:
    """Fill the mean row under the probabilities."""
    centre[:] = 0.0
    for k in range(len(rows)):
        if probabilities[k] > 1e-12:
            for j in range(len(centre)):
                centre[j] += probabilities[k] * rows[k, j]


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


@_compiled
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
    )


@_compiled
def moderated_full(rows: Features, mean: Vector, spread: Matrix, at: Room) -> None:
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
    least = _worth_computing(shares, at.best)
    flattest = 1.0
    for k in range(n):
        if shares[k] >= least:
            for j in range(d):
                at.direction[j] = rows[k, j] - at.centre[j]
            variance = _times(spread, at.direction, d, at.product)
            flats[k] = 1.0 / math.sqrt(1.0 + MODERATION * max(variance, 0.0))
            flattest = min(flattest, flats[k])
    for k in range(n):
        if shares[k] < least:
            flats[k] = flattest
        scores[k] = flats[k] * (scores[k] - middle)
    _normalise(scores, shares)


@_compiled
def moderated_diagonal(rows: Features, mean: Vector, spread: Vector, at: Room) -> None:
    """The same for a diagonal spread."""
    n, d = rows.shape
    scores, shares, flats = at.scores[:n], at.shares[:n], at.flats[:n]
    for k in range(n):
        scores[k] = _score(rows[k], mean)
    _normalise(scores, shares)
    _centre(rows, shares, at.centre)
    middle = _score(at.centre, mean)
    for k in range(n):
        variance = 0.0
        for j in range(d):
            difference = rows[k, j] - at.centre[j]
            variance += spread[j] * difference * difference
        flats[k] = 1.0 / math.sqrt(1.0 + MODERATION * variance)
        scores[k] = flats[k] * (scores[k] - middle)
    _normalise(scores, shares)


@_compiled
def _flatten(rows: Features, at: Room) -> None:
    """Mean of the flattened rows, `flat * (row - centre)`, in `at.direction`: what they are taken from below."""
    at.direction[:] = 0.0
    for k in range(len(rows)):
        scale = at.shares[k] * at.flats[k]
        if scale > 1e-12:
            for j in range(len(at.centre)):
                at.direction[j] += scale * (rows[k, j] - at.centre[j])


@_compiled
def _shrink(spread: Matrix, vector: Vector, product: Vector) -> None:
    """Take in one observation along `vector`, of unit variance."""
    n = len(vector)
    form = 1.0 + _times(spread, vector, n, product)
    for i in range(n):
        scale = product[i] / form
        for j in range(n):
            spread[i, j] -= scale * product[j]


@_compiled
def _slope(rows: Features, k: int, random: float, at: Room, slope: Vector) -> float:
    """Fill the gradient of the log-probability of arm k in weights and logit; return that probability."""
    n, d = rows.shape
    probability = (1.0 - random) * at.shares[k] + random / n
    follows = (1.0 - random) * at.shares[k] / probability
    for j in range(d):
        slope[j] = follows * (at.flats[k] * (rows[k, j] - at.centre[j]) - at.direction[j])
    slope[d] = random * (1.0 - random) * (1.0 / n - at.shares[k]) / probability
    return float(probability)


@_compiled
def learn_full(rows: Features, pick: int, mean: Vector, spread: Matrix, at: Room) -> None:
    """Move the belief by what a pick shows: its gradient, and the information that a pick is expected to give.

    Arms that are hardly ever picked but at random tell of the share of these alone.
    """
    n, d = rows.shape
    random, least, count, aside = random_share(mean), SKIPPED / n, 0, 0.0
    _flatten(rows, at)
    for k in range(n):
        count += at.shares[k] > least
    full = count > d
    if full:
        at.information[:] = 0.0
    for k in range(n):
        if at.shares[k] <= least:
            probability = (1.0 - random) * at.shares[k] + random / n
            aside += (random * (1.0 - random) * (1.0 / n - at.shares[k])) ** 2 / probability
            continue
        root = math.sqrt(_slope(rows, k, random, at, at.slope))
        for j in range(d + 1):
            at.slope[j] *= root
        if full:
            for i in range(d + 1):
                for j in range(i + 1):
                    at.information[i, j] += at.slope[i] * at.slope[j]
        else:
            _shrink(spread, at.slope, at.product)
    at.slope[:] = 0.0
    if full:
        at.information[d, d] += aside
        _shrink_by_factor(spread, at.information, at.slope, at.product)
    elif aside > 0.0:
        at.slope[d] = math.sqrt(aside)
        _shrink(spread, at.slope, at.product)
    _slope(rows, pick, random, at, at.slope)
    _times(spread, at.slope, d + 1, at.product)
    for j in range(d + 1):
        mean[j] += at.product[j]


@_compiled
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
        _shrink(spread, vector, product)


@_compiled
def learn_diagonal(rows: Features, pick: int, mean: Vector, spread: Vector, at: Room) -> None:
    """The same for a diagonal spread: the best step along the scaled gradient, and what is left of each variance."""
    n, d = rows.shape
    random = random_share(mean)
    _flatten(rows, at)
    _slope(rows, pick, random, at, at.slope)
    form, bend = 0.0, 0.0
    for j in range(d + 1):
        at.product[j] = spread[j] * at.slope[j]
        form += at.product[j] * at.slope[j]
    for k in range(n):
        probability = _slope(rows, k, random, at, at.slope)
        along = 0.0
        for j in range(d + 1):
            along += at.product[j] * at.slope[j]
        bend += probability * along * along
        at.information[k] = math.sqrt(probability) * at.slope
    for j in range(d + 1):
        mean[j] += at.product[j] * (form / (form + bend) if form > 0.0 else 0.0)
    for k in range(n):
        form = 1.0
        for j in range(d + 1):
            at.product[j] = spread[j] * at.information[k, j]
            form += at.product[j] * at.information[k, j]
        for j in range(d + 1):
            spread[j] -= at.product[j] * at.product[j] / form


@_compiled
def _judge(n: int, pick: int, random: float, shares: Vector, out: Vector) -> tuple[float, float]:
    """Fill the arms' probabilities, random picks included; return the pick's, and how likely it was not random."""
    for k in range(n):
        out[k] = (1.0 - random) * shares[k] + random / n
    return math.log(out[pick]), (1.0 - random) * shares[pick] / out[pick]


@_compiled
def _remember_full(law: Law, pick: Vector, weight: float, member: Member) -> None:
    """Keep the direction of the next step: the pick, or for a law that averages what ridge regression makes of it."""
    d = len(pick)
    member.last[d] = 1.0 - weight
    for j in range(d):
        member.last[j] = pick[j]
    if law.averages > 0.0:
        step = np.empty(d)
        form = 1.0 + _times(member.inverse, pick, d, step)
        for i in range(d):
            member.last[i] = AGE * step[i]
            for j in range(d):
                member.inverse[i, j] -= step[i] * step[j] / form


@_compiled
def _remember_diagonal(law: Law, pick: Vector, weight: float, member: Member) -> None:
    """The same for a diagonal spread."""
    d = len(pick)
    member.last[d] = 1.0 - weight
    for j in range(d):
        member.last[j] = pick[j]
        if law.averages > 0.0:
            member.last[j] *= AGE * member.inverse[j]
            member.inverse[j] /= 1.0 + member.inverse[j] * pick[j] * pick[j]


@_compiled
def _note(record: Record, t: int, member: Member) -> None:
    """Record the belief before the pick of round t."""
    if len(record.means):
        record.means[t] = member.mean
    if len(record.spreads):
        record.spreads[t] = member.spread


@_compiled
def follow_full(
    rows: Matrix,
    picks: Matrix,
    offsets: Index,
    chosen: Index,
    gaps: Vector,
    first: int,
    law: Law,
    member: Member,
    anchors: Matrix,
    record: Record,
    probabilities: Vector,
    log_probabilities: Vector,
) -> None:
    """Follow one member through rounds, the first of which is round `first` of the log.

    `anchors` are the static member's weights before each round, or one row for all of them.
    """
    at = room(offsets, rows.shape[1], rows.shape[1] + 1)
    for t in range(len(record.means) if len(record.spreads) else len(chosen)):
        if first + t > 0:
            step_full(law, first + t, gaps[t], anchors[min(t, len(anchors) - 1)], member)
        _note(record, t, member)
        if t == len(chosen):
            break
        these = rows[offsets[t] : offsets[t + 1]]
        moderated_full(these, member.mean, member.spread, at)
        out = probabilities[offsets[t] : offsets[t + 1]]
        log_probabilities[t], weight = _judge(len(these), chosen[t], random_share(member.mean), at.shares, out)
        if len(these) > 1:
            learn_full(these, chosen[t], member.mean, member.spread, at)
        _remember_full(law, picks[t], weight, member)
        if len(record.spreads):
            record.later_means[t] = member.mean
            record.later_spreads[t] = member.spread


@_compiled
def follow_diagonal(
    rows: Matrix,
    picks: Matrix,
    offsets: Index,
    chosen: Index,
    gaps: Vector,
    first: int,
    law: Law,
    member: Member,
    anchors: Matrix,
    record: Record,
    probabilities: Vector,
    log_probabilities: Vector,
) -> None:
    """The same for a diagonal spread."""
    at = room(offsets, rows.shape[1], 0)
    for t in range(len(record.means) if len(record.spreads) else len(chosen)):
        if first + t > 0:
            step_diagonal(law, first + t, gaps[t], anchors[min(t, len(anchors) - 1)], member)
        _note(record, t, member)
        if t == len(chosen):
            break
        these = rows[offsets[t] : offsets[t + 1]]
        moderated_diagonal(these, member.mean, member.spread, at)
        out = probabilities[offsets[t] : offsets[t + 1]]
        log_probabilities[t], weight = _judge(len(these), chosen[t], random_share(member.mean), at.shares, out)
        if len(these) > 1:
            learn_diagonal(these, chosen[t], member.mean, member.spread, at)
        _remember_diagonal(law, picks[t], weight, member)
        if len(record.spreads):
            record.later_means[t] = member.mean
            record.later_spreads[t] = member.spread


@_compiled
def smooth_full(record: Record, reverts: float, gaps: Vector) -> None:
    """Make every belief but the last one of all picks, from the last to the first (Rauch, Tung and Striebel)."""
    for t in range(len(record.means) - 2, -1, -1):
        moved = record.later_spreads[t].copy()
        moved[: len(moved) - 1] *= math.exp(-reverts * gaps[t + 1])
        gain = np.ascontiguousarray(np.linalg.solve(record.spreads[t + 1], moved).T)
        record.later_means[t] += gain @ (record.later_means[t + 1] - record.means[t + 1])
        change = gain @ (record.later_spreads[t + 1] - record.spreads[t + 1]) @ np.ascontiguousarray(gain.T)
        record.later_spreads[t] += 0.5 * (change + change.T)


@_compiled
def smooth_diagonal(record: Record, reverts: float, gaps: Vector) -> None:
    """The same for a diagonal spread."""
    for t in range(len(record.means) - 2, -1, -1):
        for j in range(record.means.shape[1]):
            stays = math.exp(-reverts * gaps[t + 1]) if j < record.means.shape[1] - 1 else 1.0
            gain = stays * record.later_spreads[t, j] / record.spreads[t + 1, j]
            record.later_means[t, j] += gain * (record.later_means[t + 1, j] - record.means[t + 1, j])
            record.later_spreads[t, j] += gain * gain * (record.later_spreads[t + 1, j] - record.spreads[t + 1, j])


@_compiled
def fill_rows(features: Features, offsets: Index, chosen: Index, units: Vector, rows: Matrix, picks: Matrix) -> None:
    """Fill the features less their round's mean, in units; a unit of infinity leaves a feature out.

    A learner learns from the pick as it is, so `picks` has its features with the mean, unless the mean is so large that
    nobody would learn from it as it is.
    """
    d = features.shape[1]
    mean = np.empty(d)
    for t in range(len(offsets) - 1):
        first, n = offsets[t], offsets[t + 1] - offsets[t]
        # From the first arm, then from the mean: what all arms share leaves exactly nothing.
        mean[:] = 0.0
        for row in range(first, first + n):
            for j in range(d):
                rows[row, j] = np.float64(features[row, j]) - np.float64(features[first, j])
                mean[j] += rows[row, j]
        for row in range(first, first + n):
            for j in range(d):
                rows[row, j] = (rows[row, j] - mean[j] / n) / units[j]
        for j in range(d):
            middle = (np.float64(features[first, j]) + mean[j] / n) / units[j]
            picks[t, j] = rows[first + chosen[t], j] + (middle if abs(middle) <= LARGE_MEAN else 0.0)


@_compiled
def mix(
    log_probabilities: Matrix,
    probabilities: Matrix,
    offsets: Index,
    first: int,
    weights: Vector,
    mixed: Vector,
    mixed_log: Vector,
) -> None:
    """Average the members' probabilities by how well each predicted the picks before, which moves `weights` on.

    Round t lets every member begin afresh with probability 1 / (t + 2), so that one that was poor can become good.
    """
    members = len(weights)
    for t in range(len(offsets) - 1):
        for row in range(offsets[t], offsets[t + 1]):
            total = 0.0
            for m in range(members):
                total += weights[m] * probabilities[m, row]
            mixed[row] = total
        total = 0.0
        for m in range(members):
            weights[m] *= math.exp(log_probabilities[m, t])
            total += weights[m]
        mixed_log[t] = math.log(total)
        afresh = 1.0 / (first + t + 2.0)
        for m in range(members):
            weights[m] = (1.0 - afresh) * weights[m] / total + afresh / members


@_compiled
def probabilities_full(
    rows: Features, offsets: Index, means: Matrix, spreads: NDArray[np.float64], out: Vector
) -> None:
    """Fill the probabilities of every arm, random picks included, under one belief for all rounds or one for each."""
    at = room(offsets, rows.shape[1], rows.shape[1] + 1)
    for t in range(len(offsets) - 1):
        place = min(t, len(means) - 1)
        n = offsets[t + 1] - offsets[t]
        moderated_full(rows[offsets[t] : offsets[t + 1]], means[place], spreads[place], at)
        _judge(n, 0, random_share(means[place]), at.shares, out[offsets[t] : offsets[t + 1]])


@_compiled
def probabilities_diagonal(
    rows: Features, offsets: Index, means: Matrix, spreads: NDArray[np.float64], out: Vector
) -> None:
    """The same for diagonal spreads."""
    at = room(offsets, rows.shape[1], 0)
    for t in range(len(offsets) - 1):
        place = min(t, len(means) - 1)
        n = offsets[t + 1] - offsets[t]
        moderated_diagonal(rows[offsets[t] : offsets[t + 1]], means[place], spreads[place], at)
        _judge(n, 0, random_share(means[place]), at.shares, out[offsets[t] : offsets[t + 1]])
