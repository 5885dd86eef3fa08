"""Beliefs behind picks: draw them round by round, weigh them by the picks, and draw the hidden rewards that moved them.

`N_t = n0 I + sum of x x'` over the picks before round t is never formed. What is kept is a square root `R` of its
inverse, `N_t^-1 = R'R`, by rank-one updates (Potter). Rounds are cut into blocks with a root at the start of each.

Sums are taken in the order that is written: the same features in single and in double precision give the same chain.
"""

from math import exp, log, sqrt

import numpy as np

from onlooker.base.types import Features, Index, Matrix, Vector
from onlooker.kernels.cached_njit import cached_njit

FLUSH = -45.0
"""Scores this far below the round's best have probability below 3e-20: beyond double precision, so they are skipped."""

_compiled = cached_njit(error_model="numpy")


@_compiled
def _dot(a: Vector, b: Vector) -> float:
    """Inner product by four sums side by side: as fast as reordering them would be, and always the same."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    whole = len(a) - len(a) % 4
    for j in range(0, whole, 4):
        s0 += a[j] * b[j]
        s1 += a[j + 1] * b[j + 1]
        s2 += a[j + 2] * b[j + 2]
        s3 += a[j + 3] * b[j + 3]
    for j in range(whole, len(a)):
        s0 += a[j] * b[j]
    return (s0 + s1) + (s2 + s3)


@_compiled
def _add(scale: float, row: Vector, out: Vector) -> None:
    for j in range(len(out)):
        out[j] += scale * row[j]


@_compiled
def _solve(root: Matrix, v: Vector, half: Vector, out: Vector) -> None:
    """Fill `half` with `R v` and `out` with `N^-1 v`."""
    out[:] = 0.0
    for i in range(len(v)):
        half[i] = _dot(root[i], v)
        _add(half[i], root[i], out)


@_compiled
def _learn(root: Matrix, x: Vector, half: Vector, turned: Vector) -> None:
    """The root of `(N + x x')^-1`, in place."""
    _solve(root, x, half, turned)
    length = sqrt(1.0 + _dot(half, half))
    shrink = 1.0 / (length * (1.0 + length))
    for i in range(len(x)):
        _add(-shrink * half[i], turned, root[i])


@_compiled
def weigh(
    features: Features, first: int, last: int, pick: int, alpha: float, rho: Vector, scores: Vector, pull: Vector
) -> float:
    """Log-probability of the pick among the rows `first` to `last - 1` under `softmax(alpha * x rho)`.

    Unless `pull` is empty, fills it with the gradient in rho. Uses `scores` up.
    """
    d, n_arms, total = len(rho), last - first, 0.0
    for row in range(first, last):
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        whole = d - d % 4
        for j in range(0, whole, 4):
            s0 += np.float64(features[row, j]) * rho[j]
            s1 += np.float64(features[row, j + 1]) * rho[j + 1]
            s2 += np.float64(features[row, j + 2]) * rho[j + 2]
            s3 += np.float64(features[row, j + 3]) * rho[j + 3]
        for j in range(whole, d):
            s0 += np.float64(features[row, j]) * rho[j]
        scores[row - first] = alpha * ((s0 + s1) + (s2 + s3))
    top, own = scores[0], scores[pick - first]
    for k in range(1, n_arms):
        top = max(top, scores[k])
    for k in range(n_arms):
        scores[k] = exp(scores[k] - top) if scores[k] - top > FLUSH else 0.0
        total += scores[k]
    if len(pull):
        for j in range(d):
            pull[j] = alpha * np.float64(features[pick, j])
        for k in range(n_arms):
            if scores[k] == 0.0:
                continue
            share = alpha * scores[k] / total
            for j in range(d):
                pull[j] -= share * np.float64(features[first + k, j])
    return float(own - top - log(total))


@_compiled
def roots_at(picked: Matrix, n0: float, starts: Index, roots: Matrix) -> None:
    """Fill `roots[b]` with the root of `N_t^-1` at the first round of block b, for rising `starts`."""
    d = picked.shape[1]
    root, half, turned = np.zeros((d, d)), np.empty(d), np.empty(d)
    for j in range(d):
        root[j, j] = 1.0 / sqrt(n0)
    t = 0
    for b in range(len(starts)):
        while t < starts[b]:
            _learn(root, picked[t], half, turned)
            t += 1
        roots[b] = root


@_compiled
def reward_gains(picked: Matrix, starts: Index, roots: Matrix, gains: Matrix, sizes: Vector) -> float:
    """How the rewards depend on the sums before them, given all beliefs: the half of the draw that no belief changes.

    What rounds t and later say of `y_t` is a Gaussian with precision A_t (in units of the noise), `A_T = 0`. Going
    back over round t, fills `gains[t] = A_{t+1} x_t` and `sizes[t] = 1 + x_t' A_{t+1} x_t`; then

        A_t = A_{t+1} - gains[t] gains[t]' / sizes[t] + N_t^-1

    Returns the sum of `tr N_t^-2` over all rounds.
    """
    n_rounds, d = picked.shape
    ahead = np.zeros((d, d))
    squares = 0.0
    for b in range(len(starts) - 1, -1, -1):
        start = starts[b]
        stop = starts[b + 1] if b + 1 < len(starts) else n_rounds
        inverses = np.empty((stop - start, d, d))
        inverses[0] = 0.0
        for k in range(d):
            for i in range(d):
                _add(roots[b, k, i], roots[b, k], inverses[0, i])
        turned = np.empty(d)
        for t in range(start, stop - 1):
            here, after = inverses[t - start], inverses[t - start + 1]
            for i in range(d):
                turned[i] = _dot(here[i], picked[t])
            size = 1.0 + _dot(turned, picked[t])
            for i in range(d):
                for j in range(d):
                    after[i, j] = here[i, j] - turned[i] * turned[j] / size
        for t in range(stop - 1, start - 1, -1):
            gain, here = gains[t], inverses[t - start]
            for i in range(d):
                gain[i] = _dot(ahead[i], picked[t])
            sizes[t] = 1.0 + _dot(gain, picked[t])
            for i in range(d):
                squares += _dot(here[i], here[i])
                for j in range(d):
                    ahead[i, j] += here[i, j] - gain[i] * gain[j] / sizes[t]
    return squares


@_compiled
def draw_rewards(
    picked: Matrix,
    gains: Matrix,
    sizes: Vector,
    beliefs: Matrix,
    expected: Vector,
    noise: float,
    normals: Vector,
    rewards: Vector,
    sums: Matrix,
) -> None:
    """Draw all rewards jointly, given all beliefs, and their running sums `y_t`, shape (T + 1, d).

    Backwards, the linear term b_t of what later beliefs say of `y_t`; forwards, reward by reward,

        r_t ~ N((x_t' theta* + x_t' b_{t+1} - gains[t]' y_t) / sizes[t], noise^2 / sizes[t])
    """
    n_rounds, d = picked.shape
    ahead = np.zeros(d)
    for t in range(n_rounds - 1, -1, -1):
        rewards[t] = expected[t] + _dot(ahead, picked[t])
        _add(-rewards[t] / sizes[t], gains[t], ahead)
        _add(1.0, beliefs[t], ahead)
    sums[0] = 0.0
    for t in range(n_rounds):
        rewards[t] = (rewards[t] - _dot(gains[t], sums[t])) / sizes[t] + noise / sqrt(sizes[t]) * normals[t]
        for j in range(d):
            sums[t + 1, j] = sums[t, j] + rewards[t] * picked[t, j]


@_compiled
def sum_rewards(picked: Matrix, rewards: Vector, sums: Matrix) -> None:
    """Fill `y_t`, shape (T + 1, d)."""
    sums[0] = 0.0
    for t in range(len(rewards)):
        for j in range(picked.shape[1]):
            sums[t + 1, j] = sums[t, j] + rewards[t] * picked[t, j]


@_compiled
def most_arms(offsets: Index, start: int, stop: int) -> int:
    """Of a round, in a range of rounds."""
    most = 1
    for t in range(start, stop):
        most = max(most, offsets[t + 1] - offsets[t])
    return most


@_compiled
def redraw_beliefs(
    features: Features,
    offsets: Index,
    chosen: Index,
    picked: Matrix,
    start: int,
    stop: int,
    root: Matrix,
    alpha: float,
    noise: float,
    sums: Matrix,
    steps: Vector,
    normals: Matrix,
    uniforms: Vector,
    beliefs: Matrix,
    likelihoods: Vector,
    slopes: Vector,
) -> int:
    """One Metropolis step for the belief of every round of a block; returns how many moved.

    The proposal keeps `N(m_t, noise^2 N_t^-1)` with `m_t = N_t^-1 y_t`, and draws a share `steps[t]` of it again:
    `m + sqrt(1 - step^2) (rho - m) + step noise R'z`. So only the pick's probability decides. Adds to `slopes` the
    derivative of the beliefs' log-density in n0, and the squared length of `R m_t` in units of the noise.
    """
    d = picked.shape[1]
    here, half, turned = root.copy(), np.empty(d), np.empty(d)
    mean, proposal, no_pull = np.empty(d), np.empty(d), np.empty(0)
    scores = np.empty(most_arms(offsets, start, stop))
    moved = 0
    for t in range(start, stop):
        _solve(here, sums[t], half, mean)
        kept, step = sqrt(1.0 - steps[t - start] ** 2), steps[t - start] * noise
        for j in range(d):
            proposal[j] = mean[j] + kept * (beliefs[t, j] - mean[j])
        for i in range(d):
            _add(step * normals[t - start, i], here[i], proposal)
        first = offsets[t]
        weight = weigh(features, first, offsets[t + 1], first + chosen[t], alpha, proposal, scores, no_pull)
        if log(uniforms[t - start]) < weight - likelihoods[t]:
            beliefs[t] = proposal
            likelihoods[t] = weight
            moved += 1
        trace, squared = 0.0, 0.0
        for i in range(d):
            trace += _dot(here[i], here[i])
            squared += _dot(here[i], mean) ** 2
        excess = _dot(beliefs[t], beliefs[t]) - _dot(mean, mean)
        slopes[0] += 0.5 * (trace - excess / (noise * noise))
        slopes[1] += squared / (noise * noise)
        _learn(here, picked[t], half, turned)
    return moved


@_compiled
def carry_beliefs(
    features: Features,
    offsets: Index,
    chosen: Index,
    picked: Matrix,
    start: int,
    stop: int,
    root: Matrix,
    alpha: float,
    sums: Matrix,
    other_sums: Matrix,
    beliefs: Matrix,
    other_beliefs: Matrix,
    likelihoods: Vector,
    pulls: Matrix,
) -> None:
    """Carry the beliefs of a block along when `y_t` becomes `other_sums[t]`: how far each is from its mean stays.

    Fills `other_beliefs`, the log-probabilities of their picks, and `pulls[t]`, the gradient of that in `y_t`.
    """
    d = picked.shape[1]
    here, half, turned = root.copy(), np.empty(d), np.empty(d)
    shift, pull = np.empty(d), np.empty(d)
    scores = np.empty(most_arms(offsets, start, stop))
    for t in range(start, stop):
        for j in range(d):
            shift[j] = other_sums[t, j] - sums[t, j]
        _solve(here, shift, half, turned)
        for j in range(d):
            other_beliefs[t, j] = beliefs[t, j] + turned[j]
        first = offsets[t]
        likelihoods[t] = weigh(
            features, first, offsets[t + 1], first + chosen[t], alpha, other_beliefs[t], scores, pull
        )
        _solve(here, pull, half, pulls[t])
        _learn(here, picked[t], half, turned)


@_compiled
def reward_slopes(picked: Matrix, pulls: Matrix, slopes: Vector) -> None:
    """Fill the gradient in every reward: it moves `y_t` of all later rounds along its pick's features."""
    ahead = np.zeros(picked.shape[1])
    for t in range(len(slopes) - 1, -1, -1):
        slopes[t] = _dot(picked[t], ahead)
        _add(1.0, pulls[t], ahead)
