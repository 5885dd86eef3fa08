"""Follow weights that walk, from picks alone: one pass of an extended Kalman filter over a conditional logit.

A member of the bank has a law of motion (`Law`) and a belief as in `logit_round`, which is moved on from round to round
here. Where a spread is a covariance or its diagonal, one function takes both, and is compiled for each.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.kernels.logit_round import (
    Room,
    compiled,
    flattened,
    learn,
    moderated,
    pad,
    padded,
    random_share,
    room,
    times,
    unpad,
)

HALF_LIFE = 100.0
"""Rounds after which steps that shrink with time are half as large."""
AGE = 10.0
"""Rounds that a learner that averages is thought to have seen before its first, in every direction."""
WANDERS = 1e-4
"""Variance that a round adds to the logit of the share of random picks: it may change, over some thousand rounds."""
LARGE_MEAN = 2.0
"""Mean of a round's features, in units, beyond which it is left out of what was learned from."""
TIDIED = 64
"""At every so many rounds what rounding did to symmetry is undone."""


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
    grows: float
    """Power of time by which all weights grow, as where a learner explores less and less; 0 where they do not."""
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


@compiled
def _variances(law: Law, round_number: int, gap: float, surprise: float) -> tuple[float, float]:
    """What a step adds in every direction, and in that of the last pick.

    A learner whose log has gaps went on to pick, nobody knows what: what is longer than a round goes everywhere.
    """
    size = HALF_LIFE / (HALF_LIFE + round_number) if law.shrinks > 0.0 else 1.0
    seen = min(gap, 1.0)
    return size * (gap * law.every + (gap - seen) * law.pick), seen * (size * law.pick + law.surprise * surprise)


@compiled
def transition(law: Law, round_number: int, gap: float) -> float:
    """What the weights' distance from where they come back to, or from 0, is multiplied by before a round."""
    return math.exp((law.grows / (AGE + round_number) - law.reverts) * gap)


@compiled
def step(law: Law, round_number: int, gap: float, anchor: Vector, member: Member, spread: Vector | Matrix) -> None:
    """Let the weights move for as long as `gap`, counted in rounds, before round `round_number`; `spread` is theirs."""
    d = len(member.mean) - 1
    stays = transition(law, round_number, gap)
    for i in range(d if stays != 1.0 else 0):
        level = anchor[i] if law.reverts > 0.0 else 0.0
        member.mean[i] = level + stays * (member.mean[i] - level)
    every, along = _variances(law, round_number, gap, member.last[d])
    # The dimensions of an argument are known when this is compiled: one branch is left.
    if spread.ndim == 1:
        for j in range(d):
            spread[j] *= stays * stays
            spread[j] += (every + along * member.last[j] * member.last[j]) / d
        spread[d] += law.random * WANDERS
        return
    if stays != 1.0:
        for i in range(d):
            for j in range(d):
                spread[i, j] *= stays * stays
            spread[i, d] *= stays
            spread[d, i] *= stays
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


@compiled
def _judge(n: int, pick: int, random: float, shares: Vector, out: Vector) -> tuple[float, float]:
    """Fill the arms' probabilities, random picks included; return the pick's, and how likely it was not random."""
    for k in range(n):
        out[k] = (1.0 - random) * shares[k] + random / n
    return min(math.log(out[pick]), 0.0), (1.0 - random) * shares[pick] / out[pick]


@compiled
def _remember(law: Law, pick: Vector, weight: float, last: Vector, inverse: Vector | Matrix) -> None:
    """Keep the direction of the next step: the pick, or for a law that averages what ridge regression makes of it."""
    d = len(pick)
    last[d] = 1.0 - weight
    for j in range(d):
        last[j] = pick[j]
    if law.averages == 0.0:
        return
    if inverse.ndim == 1:
        for j in range(d):
            last[j] *= AGE * inverse[j]
            inverse[j] /= 1.0 + inverse[j] * pick[j] * pick[j]
    else:
        step = np.empty(d)
        form = 1.0 + times(inverse, pick, d, step)
        for i in range(d):
            last[i] = AGE * step[i]
            scale = step[i] / form
            for j in range(d):
                inverse[i, j] -= scale * step[j]


@compiled
def _log_density(factor: Matrix, apart: Vector) -> float:
    """Of a normal distribution so far from its mean, less a constant; `apart` is divided by its factor, Cholesky's."""
    found = 0.0
    for i in range(len(apart)):
        rest = apart[i]
        for j in range(i):
            rest -= factor[i, j] * apart[j]
        apart[i] = rest / factor[i, i]
        found -= 0.5 * apart[i] * apart[i] + math.log(factor[i, i])
    return found


@compiled
def _learn_around(rows: Matrix, pick: int, around: Vector, mean: Vector, spread: Vector | Matrix, at: Room) -> float:
    """Move the belief by a round whose choice model is approximated at other weights; `at` is filled for these.

    Give the log-probability of the pick less that at these weights.
    """
    n = len(mean)
    factor = np.linalg.cholesky(np.ascontiguousarray(spread[:n, :n]))
    moved = around - mean
    found = _log_density(factor, moved)
    for i in range(n - 1, -1, -1):
        moved[i] /= factor[i, i]
        for j in range(i):
            moved[j] -= factor[i, j] * moved[i]
    mean[:] = around
    learn(rows, pick, mean, spread, at)
    # What was believed before pulls back from there.
    for i in range(n):
        for j in range(n):
            mean[i] -= spread[i, j] * moved[j]
    return found - _log_density(np.linalg.cholesky(np.ascontiguousarray(spread[:n, :n])), around - mean)


@compiled
def _learn(rows: Matrix, pick: int, t: int, middles: Matrix, mean: Vector, spread: Vector | Matrix, at: Room) -> float:
    """Move the belief by round t; where `middles` has rows, as `_learn_around` does, and give what that gives."""
    # The dimensions of an argument are known when this is compiled: one branch is left.
    if spread.ndim == 1:
        learn(rows, pick, mean, spread, at)
    else:
        if len(middles) > 0:
            return _learn_around(rows, pick, middles[t], mean, spread, at)
        learn(rows, pick, mean, spread, at)
    return 0.0


@compiled
def _note(record: Record, t: int, mean: Vector, spread: Vector | Matrix) -> None:
    """Record the belief before the pick of round t."""
    if len(record.means):
        record.means[t] = mean
    if len(record.spreads):
        unpad(spread, record.spreads[t])


@compiled
def follow(
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
    middles: Matrix,
    flats: Vector,
    probabilities: Vector,
    log_probabilities: Vector,
) -> None:
    """Follow one member through rounds, the first of which is round `first` of the log.

    `anchors` are the static member's weights before each round, or one row for all of them. Where `middles` has rows,
    each round's choice model is approximated at its weights there, its logits flattened by `flats`, not at what is
    believed before the round; the log-probabilities are then those of Laplace's method.
    """
    at, spread = room(offsets, rows.shape[1], member.spread.ndim), padded(member.spread)
    again = len(middles) > 0
    for t in range(len(record.means) if len(record.spreads) else len(chosen)):
        if first + t > 0:
            step(law, first + t, gaps[t], anchors[min(t, len(anchors) - 1)], member, spread)
        _note(record, t, member.mean, spread)
        if t == len(chosen):
            break
        these = rows[offsets[t] : offsets[t + 1]]
        out = probabilities[offsets[t] : offsets[t + 1]]
        middle = middles[t] if again else member.mean
        if again:
            flattened(these, middle, flats[offsets[t] : offsets[t + 1]], at)
        else:
            moderated(these, middle, spread, at)
        log_probabilities[t], weight = _judge(len(these), chosen[t], random_share(middle), at.shares, out)
        if len(these) > 1:
            log_probabilities[t] += _learn(these, chosen[t], t, middles, member.mean, spread, at)
        _remember(law, picks[t], weight, member.last, member.inverse)
        if len(record.spreads):
            record.later_means[t] = member.mean
            unpad(spread, record.later_spreads[t])
    unpad(spread, member.spread)


@compiled
def smooth_full(record: Record, law: Law, first: int, gaps: Vector) -> None:
    """Make every belief but the last one of all picks, from the last to the first (Rauch, Tung and Striebel)."""
    for t in range(len(record.means) - 2, -1, -1):
        moved = record.later_spreads[t].copy()
        moved[: len(moved) - 1] *= transition(law, first + t + 1, gaps[t + 1])
        gain = np.ascontiguousarray(np.linalg.solve(record.spreads[t + 1], moved).T)
        record.later_means[t] += gain @ (record.later_means[t + 1] - record.means[t + 1])
        change = gain @ (record.later_spreads[t + 1] - record.spreads[t + 1]) @ np.ascontiguousarray(gain.T)
        record.later_spreads[t] += 0.5 * (change + change.T)


@compiled
def smooth_diagonal(record: Record, law: Law, first: int, gaps: Vector) -> None:
    """The same for a diagonal spread."""
    for t in range(len(record.means) - 2, -1, -1):
        moves = transition(law, first + t + 1, gaps[t + 1])
        for j in range(record.means.shape[1]):
            stays = moves if j < record.means.shape[1] - 1 else 1.0
            gain = stays * record.later_spreads[t, j] / record.spreads[t + 1, j]
            record.later_means[t, j] += gain * (record.later_means[t + 1, j] - record.means[t + 1, j])
            record.later_spreads[t, j] += gain * gain * (record.later_spreads[t + 1, j] - record.spreads[t + 1, j])


@compiled
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


@compiled
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
        mixed_log[t] = min(math.log(total), 0.0)
        afresh = 1.0 / (first + t + 2.0)
        for m in range(members):
            weights[m] = (1.0 - afresh) * weights[m] / total + afresh / members


@compiled
def fill_probabilities(
    rows: Features, offsets: Index, means: Matrix, spreads: NDArray[np.float64], out: Vector
) -> None:
    """Fill the probabilities of every arm, random picks included, under one belief for all rounds or one for each."""
    at, spread = room(offsets, rows.shape[1], spreads.ndim - 1), padded(spreads[0])
    for t in range(len(offsets) - 1):
        place = min(t, len(means) - 1)
        n = offsets[t + 1] - offsets[t]
        if place == t:
            pad(spreads[t], spread)
        moderated(rows[offsets[t] : offsets[t + 1]], means[place], spread, at)
        _judge(n, 0, random_share(means[place]), at.shares, out[offsets[t] : offsets[t + 1]])


@compiled
def fill_flats(rows: Features, offsets: Index, means: Matrix, spreads: NDArray[np.float64], out: Vector) -> None:
    """Fill how much each arm's logit is flattened, under one belief for each round."""
    at, spread = room(offsets, rows.shape[1], 2), padded(spreads[0])
    for t in range(len(offsets) - 1):
        pad(spreads[t], spread)
        moderated(rows[offsets[t] : offsets[t + 1]], means[t], spread, at)
        for k in range(offsets[t + 1] - offsets[t]):
            out[offsets[t] + k] = at.flats[k]
