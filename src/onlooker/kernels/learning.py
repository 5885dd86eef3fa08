"""Play rounds: score the arms on offer, pick one, learn from its reward.

`V = ridge * I + sum of x x'` over the picks is never formed and never inverted. A round costs one rank-one update of
its inverse (Sherman and Morrison) and, for Thompson sampling, one of its Cholesky factor.
"""

from typing import NamedTuple

import numpy as np

from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.kernels.cached_njit import cached_njit


# The order of a sum is the compiler's, so that it can use wide registers; it is the same in every call.
@cached_njit(fastmath={"reassoc", "contract"})
def scale_rows(features: Features) -> None:
    """Divide every row by `max(1, norm)`, in place."""
    for row in range(features.shape[0]):
        square = 0.0
        for j in range(features.shape[1]):
            value = np.float64(features[row, j])
            square += value * value
        if square > 1.0:
            factor = features.dtype.type(1.0 / np.sqrt(square))
            for j in range(features.shape[1]):
                features[row, j] *= factor


OPTIMISTIC, SAMPLING, SOFTMAX, MIXING = range(4)
"""How a round is decided; `choose` says what each rule reads."""


class State(NamedTuple):
    """What a ridge learner knows. The arrays are updated in place."""

    theta: Vector
    """Ridge estimate, shape (d,)."""
    inverse: Matrix
    """Inverse of V."""
    factor: Matrix
    """Upper triangle U with V = U'U; shape (0, 0) for rules that do not sample."""
    growth: Vector
    """Shape (1,): log det V, less that of its beginning."""
    reach: Vector
    """Shape (1,): an upper bound on `sqrt(x' V^-1 x)` of whatever is on offer."""


# The order of a sum is the compiler's, so that it can use wide registers; it is the same in every call. Features may be
# float32, sums never are.
_sums = cached_njit(fastmath={"reassoc", "contract"})
_compiled = cached_njit()


@_sums
def dot(features: Features, row: int, theta: Vector) -> float:
    """Inner product of one row with theta."""
    total = 0.0
    for j in range(len(theta)):
        total += np.float64(features[row, j]) * theta[j]
    return total


@_sums
def _times(matrix: Matrix, x: Vector, out: Vector) -> float:
    """Fill `out` with `matrix @ x`; return `x' matrix x`."""
    form = 0.0
    for i in range(len(x)):
        total = 0.0
        for j in range(len(x)):
            total += matrix[i, j] * x[j]
        out[i] = total
        form += total * x[i]
    return form


@_compiled
def _score(features: Features, first: int, theta: Vector, scores: Vector) -> int:
    """Fill `scores`, one per arm of the round; return the position of the first best."""
    best = 0
    for k in range(len(scores)):
        scores[k] = dot(features, first + k, theta)
        if scores[k] > scores[best]:
            best = k
    return best


@_compiled
def _optimistic(features: Features, first: int, state: State, width: float, scores: Vector) -> int:
    """First arm with the largest `<x, theta> + width * sqrt(x' V^-1 x)`.

    The square root is at most `reach`. An arm that would lose even with that is passed over, which leaves few arms of a
    settled learner to be looked at closely.
    """
    d = len(state.theta)
    x, scratch = np.empty(d), np.empty(d)
    leader = _score(features, first, state.theta, scores)
    for j in range(d):
        x[j] = features[first + leader, j]
    pick, best = leader, scores[leader] + width * np.sqrt(max(_times(state.inverse, x, scratch), 0.0))
    bonus = width * state.reach[0]
    for k in range(len(scores)):
        if k == leader or scores[k] + bonus < best:
            continue
        for j in range(d):
            x[j] = features[first + k, j]
        value = scores[k] + width * np.sqrt(max(_times(state.inverse, x, scratch), 0.0))
        if value > best or (value == best and k < pick):
            pick, best = k, value
    return pick


@_compiled
def _sampled(state: State, spread: float, normals: Vector) -> Vector:
    """Theta drawn around the estimate: `theta + spread * U^-1 z`, whose covariance is `spread^2 V^-1`."""
    step = normals.copy()
    # By columns: the rows are short sums that each wait for the one before, four times slower at d = 50.
    for i in range(len(step) - 1, -1, -1):
        step[i] /= state.factor[i, i]
        for j in range(i):
            step[j] -= state.factor[j, i] * step[i]
    return state.theta + spread * step


@_compiled
def _softmax(scores: Vector, best: int, temperature: float, uniform: float) -> int:
    """First arm where the running sum of `exp(score / temperature)` passes `uniform` of its total; uses `scores` up."""
    top = scores[best]
    total = 0.0
    for k in range(len(scores)):
        total += np.exp((scores[k] - top) / temperature)
        scores[k] = total
    for k in range(len(scores) - 1):
        if scores[k] > uniform * total:
            return k
    return len(scores) - 1


@_compiled
def choose(
    features: Features,
    first: int,
    last: int,
    t: int,
    rule: int,
    parameters: Vector,
    draws: Vector,
    state: State,
) -> int:
    """Position of round t's pick among the rows `first` to `last - 1`.

    =============  =======================================  ==============
    rule           parameters                               draws
    =============  =======================================  ==============
    `OPTIMISTIC`   a, b, c: width `a + b sqrt(growth + c)`  none
    `SAMPLING`     spread of theta in units of V^-1/2       d normals
    `SOFTMAX`      temperature                              one uniform
    `MIXING`       share of uniform picks, rounds it lasts  one uniform
    =============  =======================================  ==============
    """
    scores = np.empty(last - first)
    if rule == OPTIMISTIC:
        width = parameters[0] + parameters[1] * np.sqrt(state.growth[0] + parameters[2])
        return _optimistic(features, first, state, width, scores)
    if rule == SAMPLING:
        return _score(features, first, _sampled(state, parameters[0], draws), scores)
    if rule == SOFTMAX:
        best = _score(features, first, state.theta, scores)
        return _softmax(scores, best, parameters[0], draws[0])
    share = parameters[0] if t < parameters[1] else 0.0
    if draws[0] < share:
        # Given that it is below the share, the draw is uniform there: it serves a second time.
        return min(int(draws[0] / share * len(scores)), len(scores) - 1)
    return _score(features, first, state.theta, scores)


@_compiled
def _update_factor(factor: Matrix, x: Vector) -> None:
    """U'U becomes U'U + xx', by one rotation a row; `x` is used up."""
    d = len(x)
    for i in range(d):
        diagonal = np.sqrt(factor[i, i] ** 2 + x[i] ** 2)
        cosine, sine = factor[i, i] / diagonal, x[i] / diagonal
        factor[i, i] = diagonal
        for j in range(i + 1, d):
            above = factor[i, j]
            factor[i, j] = cosine * above + sine * x[j]
            x[j] = cosine * x[j] - sine * above


@_compiled
def learn(features: Features, row: int, reward: float, state: State) -> None:
    """Add one pick and its reward to what is known."""
    d = len(state.theta)
    x, shift = np.empty(d), np.empty(d)
    for j in range(d):
        x[j] = features[row, j]
    form = _times(state.inverse, x, shift)
    surprise = (reward - dot(features, row, state.theta)) / (1.0 + form)
    for i in range(d):
        state.theta[i] += surprise * shift[i]
        scale = shift[i] / (1.0 + form)
        for j in range(d):
            state.inverse[i, j] -= scale * shift[j]
    state.growth[0] += np.log1p(form)
    if len(state.factor):
        _update_factor(state.factor, x)


@_compiled
def play(
    features: Features,
    offsets: Index,
    start: int,
    stop: int,
    theta_star: Vector,
    noise: Vector,
    rule: int,
    parameters: Vector,
    draws: Matrix,
    batch: int,
    last_update: int,
    state: State,
    chosen: Index,
    rewards: Vector,
) -> None:
    """Play the rounds `start` to `stop - 1`: fill their picks and rewards, update `state`.

    `draws` has one row a round from `start` on. After every `batch` rounds the learner takes in their rewards, for the
    last time after round `last_update - 1`.
    """
    for t in range(start, stop):
        pick = choose(features, offsets[t], offsets[t + 1], t, rule, parameters, draws[t - start], state)
        chosen[t] = pick
        rewards[t] = dot(features, offsets[t] + pick, theta_star) + noise[t]
        if (t + 1) % batch == 0 and t < last_update:
            for s in range(t + 1 - batch, t + 1):
                learn(features, offsets[s] + chosen[s], rewards[s], state)
