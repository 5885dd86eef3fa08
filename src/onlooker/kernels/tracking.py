"""Follow a ridge learner's hidden estimate from its picks: one pass of an assumed-density filter."""

import math

import numpy as np
from numpy.typing import NDArray

from onlooker.base.numerics import WIDE
from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.kernels.all_arms import all_arms
from onlooker.kernels.cached_njit import cached_njit
from onlooker.kernels.logit_round import MODERATION, Room, learn, moderated, padded
from onlooker.kernels.logit_round import room as softmax_room
from onlooker.kernels.margins import (
    Belief,
    Model,
    Scratch,
    beats_all,
    fill_values,
    inner,
    room,
    same_row,
    times,
)

BINS = 10
"""Of the predicted probability, in the tally that checks it."""
CHECKED = 4
"""At every so many choices the predicted probability is held against the pick."""
BLOCK = 64
"""Rounds between two looks at the largest eigenvalues, which bound what has to be computed."""
UNCERTAIN = 1.0
"""Variance of a score, in squared temperatures, from which on a softmax is followed as the best score with noise."""
EPOCHS = 10
"""Parts of a log, each twice as long as the one before and the last without end, in which the fit is checked apart."""

_compiled = cached_njit()


@_compiled
def _take_in(
    count: int, covariance: Matrix, carried: Matrix, shifts: Vector, drops: Vector, weight: float, belief: Belief
) -> None:
    """Update the belief with the margins, with probability `weight`; else the pick was random and changes nothing."""
    d = len(belief.mean)
    jump = np.zeros(d)
    for k in range(count):
        for i in range(k):
            scale = drops[i] * covariance[i, k]
            for j in range(d):
                carried[k, j] -= scale * carried[i, j]
        for j in range(d):
            jump[j] += shifts[k] * carried[k, j]
    for i in range(d):
        belief.mean[i] += weight * jump[i]
        row = belief.spread[i]
        scale = weight * (1.0 - weight) * jump[i]
        for j in range(d):
            row[j] += scale * jump[j]
        for k in range(count):
            scale = weight * drops[k] * carried[k, i]
            if scale != 0.0:
                for j in range(d):
                    row[j] -= scale * carried[k, j]


@_compiled
def _move(features: Features, row: int, belief: Belief) -> None:
    """The learner updates on a reward that was not observed: its estimate moves, and its next moves are smaller."""
    d = len(belief.mean)
    x, step = np.empty(d), np.empty(d)
    for j in range(d):
        x[j] = features[row, j]
    form = times(belief.prior_inverse, x, step)
    belief.largest[1] += inner(step, step) / (1.0 + form)
    for i in range(d):
        scale = step[i] / (1.0 + form)
        # Of arms with weights of their own, only those of the pick move.
        if scale != 0.0:
            for j in range(d):
                belief.spread[i, j] += scale * step[j]
                belief.prior_inverse[i, j] -= scale * step[j]
    form = times(belief.inverse, x, step)
    for i in range(d):
        scale = step[i] / (1.0 + form)
        if scale != 0.0:
            for j in range(d):
                belief.inverse[i, j] -= scale * step[j]


@_compiled
def _descend(features: Features, row: int, rate: float, belief: Belief) -> None:
    """The learner makes a gradient step: `w + rate x (x' (truth - w) + noise)`, with both in the belief, w first."""
    d = len(belief.mean) // 2
    x, steps = np.empty(d), np.empty(2 * d)
    error = 0.0
    for j in range(d):
        x[j] = features[row, j]
        error += x[j] * (belief.mean[d + j] - belief.mean[j])
    variance = 1.0
    for i in range(2 * d):
        steps[i] = inner(belief.spread[i, d:], x) - inner(belief.spread[i, :d], x)
    for j in range(d):
        variance += x[j] * (steps[d + j] - steps[j])
        belief.mean[j] += rate * error * x[j]
    for i in range(2 * d):
        for j in range(d):
            belief.spread[i, j] += rate * steps[i] * x[j]
    for i in range(d):
        for j in range(2 * d):
            belief.spread[i, j] += rate * x[i] * steps[j]
        for j in range(d):
            belief.spread[i, j] += rate * rate * variance * x[i] * x[j]
    length = math.sqrt(inner(x, x))
    belief.largest[1] += 2.0 * rate * length * math.sqrt(inner(steps, steps)) + rate * rate * variance * length * length


@_compiled
def _update(features: Features, row: int, model: Model, belief: Belief) -> None:
    """The learner updates on the pick's reward, unless it waits."""
    if model.rate > 0.0:
        _descend(features, row, model.rate, belief)
    elif model.waits == 0.0:
        _move(features, row, belief)


@_compiled
def move(rows: Features, belief: Belief) -> None:
    """The learner updates on the rewards of these picks, one after the other."""
    for row in range(len(rows)):
        _move(rows, row, belief)


@_compiled
def _count_in(tally: Matrix, probability: float, picked: float) -> None:
    place = min(int(probability * BINS), BINS - 1)
    tally[0, place] += probability
    tally[1, place] += picked
    tally[2, place] += probability * (1.0 - probability)
    tally[3, place] += 1.0


@_compiled
def _fill_scored(features: Features, first: int, n_arms: int, model: Model, belief: Belief, rows: Matrix) -> None:
    """Fill what an arm's score is made of, in temperatures: its features as a shrunken estimate sees them."""
    d = len(belief.mean)
    x, turned = np.empty(d), np.empty(d)
    for k in range(n_arms):
        for j in range(d):
            x[j] = features[first + k, j]
        if model.shrink != 0.0:
            times(belief.inverse, x, turned)
            for j in range(d):
                x[j] -= model.shrink * turned[j]
        for j in range(d):
            rows[k, j] = x[j] / model.temperature


@_compiled
def _learn_softmax(rows: Features, pick: int, lapse: float, belief: Belief, at: Room, wider: Matrix) -> None:
    """Take in a softmax pick; `wider` has the spread, beside which the share of random picks is known."""
    d = len(belief.mean)
    mean = np.empty(d + 1)
    mean[:d] = belief.mean
    mean[d] = math.log(lapse / (1.0 - lapse)) if lapse < 1.0 else 50.0
    learn(rows, pick, mean, wider, at)
    belief.mean[:] = mean[:d]
    belief.spread[:] = wider[:d, :d]


@_compiled
def _best_of(shares: Vector) -> int:
    best = 0
    for k in range(1, len(shares)):
        if shares[k] > shares[best]:
            best = k
    return best


@_compiled
def _fill_arms(
    features: Features, first: int, best: int, model: Model, belief: Belief, at: Scratch, probabilities: Vector
) -> None:
    """Fill how probable every arm of a round is, random picks included, where `at.values` has the scores."""
    n_arms = len(probabilities)
    total = all_arms(features, first, best, model, belief, at, probabilities)
    for arm in range(n_arms):
        kept = probabilities[arm] / total if total > 0.0 else 1.0 / n_arms
        probabilities[arm] = (1.0 - model.lapse) * kept + model.lapse / n_arms


@_compiled
def _follow_best(
    features: Features,
    offsets: Index,
    chosen: Index,
    model: Model,
    choices: int,
    belief: Belief,
    log_probabilities: Vector,
    random_picks: Vector,
    tally: Matrix,
    arms: Vector,
) -> None:
    """See `follow`, for a learner that picks the best score."""
    at = room(offsets, 0, len(chosen), features.shape[1])
    for t in range(len(chosen)):
        first, n_arms, pick = offsets[t], offsets[t + 1] - offsets[t], chosen[t]
        best = fill_values(features, first, pick, model, belief, at.values[:n_arms], at.reaches[:n_arms])
        checked = choices % CHECKED == 0 and n_arms > 1
        choices += n_arms > 1
        if len(arms):
            _fill_arms(features, first, best, model, belief, at, arms[first : first + n_arms])
        if checked and best != pick:
            probability, _, twins = beats_all(features, first, n_arms, best, model, belief, at)
            hit = 1.0 if twins > 1 and same_row(features, first + best, first + pick) else 0.0
            _count_in(tally, (1.0 - model.lapse) * probability + model.lapse * twins / n_arms, hit)
        probability, count, twins = beats_all(features, first, n_arms, pick, model, belief, at)
        if checked and best == pick:
            _count_in(tally, (1.0 - model.lapse) * probability + model.lapse * twins / n_arms, 1.0)
        kept = (1.0 - model.lapse) * probability / twins
        total = kept + model.lapse / n_arms
        weight = kept / total if total > 0.0 else 0.0
        log_probabilities[t] = math.log(max(total, 1e-300))
        random_picks[t] = 1.0 - weight
        if count and weight > 0.0:
            _take_in(count, at.covariance, at.carried, at.shifts, at.drops, weight, belief)
        _update(features, first + pick, model, belief)


@_compiled
def _follow_softmax(
    features: Features,
    offsets: Index,
    chosen: Index,
    model: Model,
    choices: int,
    belief: Belief,
    log_probabilities: Vector,
    random_picks: Vector,
    tally: Matrix,
    arms: Vector,
) -> None:
    """See `follow`, for a learner that picks by a softmax: the best score with Gumbel noise.

    Where scores are less certain than a temperature, normal noise of the same variance stands for it. Its shape hardly
    matters then, and what the pick says of the weights is far from normal.
    """
    d = features.shape[1]
    at, flattest = softmax_room(offsets, d, 2), 1.0 / math.sqrt(1.0 + MODERATION * UNCERTAIN)
    variance, updates = (math.pi * model.temperature) ** 2 / 6.0, (model.waits, model.rate)
    noisy = Model(0.0, 0.0, variance, 0.0, model.lapse, model.shrink, *updates)
    rows, wider = np.empty((len(at.scores), d)), padded(np.zeros((d + 1, d + 1)))
    for t in range(len(chosen)):
        first, n_arms, pick = offsets[t], offsets[t + 1] - offsets[t], chosen[t]
        _fill_scored(features, first, n_arms, model, belief, rows)
        wider[:d, :d] = belief.spread
        moderated(rows[:n_arms], belief.mean, wider, at)
        if at.flats[:n_arms].min() < flattest:
            made = log_probabilities[t : t + 1], random_picks[t : t + 1]
            _follow_best(features, offsets[t : t + 2], chosen[t : t + 1], noisy, choices, belief, *made, tally, arms)
            choices += n_arms > 1
            continue
        if len(arms):
            for k in range(n_arms):
                arms[first + k] = (1.0 - model.lapse) * at.shares[k] + model.lapse / n_arms
        kept = (1.0 - model.lapse) * at.shares[pick]
        total = kept + model.lapse / n_arms
        if choices % CHECKED == 0 and n_arms > 1:
            best = _best_of(at.shares[:n_arms])
            probability = (1.0 - model.lapse) * at.shares[best] + model.lapse / n_arms
            _count_in(tally, probability, 1.0 if best == pick else 0.0)
        choices += n_arms > 1
        log_probabilities[t] = math.log(max(total, 1e-300))
        random_picks[t] = 1.0 - kept / total if total > 0.0 else 1.0
        if n_arms > 1 and model.lapse < 1.0:
            _learn_softmax(rows[:n_arms], pick, model.lapse, belief, at, wider)
        _update(features, first + pick, model, belief)


@_compiled
def follow_part(
    features: Features,
    offsets: Index,
    chosen: Index,
    model: Model,
    choices: int,
    belief: Belief,
    log_probabilities: Vector,
    random_picks: Vector,
    tally: Matrix,
    arms: Vector,
) -> None:
    """See `follow`, for rounds of one epoch whose first has a fresh belief."""
    if model.temperature > 0.0:
        _follow_softmax(features, offsets, chosen, model, choices, belief, log_probabilities, random_picks, tally, arms)
    else:
        _follow_best(features, offsets, chosen, model, choices, belief, log_probabilities, random_picks, tally, arms)


@_compiled
def _norm(matrix: Matrix) -> float:
    total = 0.0
    for i in range(len(matrix)):
        total += inner(matrix[i], matrix[i])
    return math.sqrt(total)


@_compiled
def _largest_eigenvalue(matrix: Matrix) -> float:
    """The bound of `onlooker.base.numerics`, without its calls: it is asked for twice every few rounds."""
    d, norm = len(matrix), _norm(matrix)
    if d > WIDE:
        most = 0.0
        for i in range(d):
            most = max(most, np.abs(matrix[i]).sum())
        return float(min(norm, most) * (1.0 + 1e-9))
    power = matrix / norm
    for _ in range(4):
        product = np.zeros((d, d))
        for i in range(d):
            for k in range(d):
                scale = power[i, k]
                for j in range(d):
                    product[i, j] += scale * power[k, j]
        power = product
    return float(norm * _norm(power) ** (1.0 / 16.0) * (1.0 + 1e-9))


@_compiled
def refresh(belief: Belief) -> None:
    """Undo what rounding did to symmetry, and bound the largest eigenvalues."""
    for matrix in (belief.spread, belief.inverse, belief.prior_inverse):
        for i in range(len(matrix)):
            for j in range(i):
                matrix[i, j] = matrix[j, i] = (matrix[i, j] + matrix[j, i]) / 2.0
    belief.largest[0] = _largest_eigenvalue(belief.inverse)
    belief.largest[1] = _largest_eigenvalue(belief.spread)


@_compiled
def follow(
    features: Features,
    offsets: Index,
    chosen: Index,
    model: Model,
    n_rounds: int,
    choices: int,
    belief: Belief,
    log_probabilities: Vector,
    random_picks: Vector,
    tally: NDArray[np.float64],
    arms: Vector,
) -> None:
    """Follow the learner through some rounds, after `n_rounds` others with so many `choices` of more than one arm.

    Fills for each of them the log-probability of its pick given all earlier ones and the probability that it was
    random. At every CHECKED-th choice `tally`, shape (EPOCHS, 4, BINS), takes in the probability p of the best arm or
    those like it, whether one of them was picked, p (1 - p), and one: in the column of p's bin. `arms`, unless it is
    empty, receives the probability of every arm, given all earlier picks.
    """
    done = 0
    while done < len(chosen):
        if n_rounds % BLOCK == 0:
            refresh(belief)
        stop, epoch, whole = min(len(chosen), done + BLOCK - n_rounds % BLOCK), 0, n_rounds // BLOCK
        while whole > 0 and epoch < EPOCHS - 1:
            whole //= 2
            epoch += 1
        part = offsets[done : stop + 1], chosen[done:stop]
        made = log_probabilities[done:stop], random_picks[done:stop]
        follow_part(features, *part, model, choices, belief, *made, tally[epoch], arms)
        for t in range(done, stop):
            choices += offsets[t + 1] - offsets[t] > 1
        n_rounds += stop - done
        done = stop


@_compiled
def pick_probabilities(features: Features, offsets: Index, model: Model, belief: Belief, probabilities: Vector) -> None:
    """Fill how probable every arm of the rounds is as the learner's next pick."""
    if model.temperature > 0.0:
        d = features.shape[1]
        wide = softmax_room(offsets, d, 2)
        rows, spread = np.empty((len(wide.scores), d)), padded(belief.spread)
        for t in range(len(offsets) - 1):
            first, n_arms = offsets[t], offsets[t + 1] - offsets[t]
            _fill_scored(features, first, n_arms, model, belief, rows)
            moderated(rows[:n_arms], belief.mean, spread, wide)
            for k in range(n_arms):
                probabilities[first + k] = (1.0 - model.lapse) * wide.shares[k] + model.lapse / n_arms
        return
    at = room(offsets, 0, len(offsets) - 1, features.shape[1])
    for t in range(len(offsets) - 1):
        first, n_arms = offsets[t], offsets[t + 1] - offsets[t]
        best = fill_values(features, first, -1, model, belief, at.values[:n_arms], at.reaches[:n_arms])
        _fill_arms(features, first, best, model, belief, at, probabilities[first : first + n_arms])
