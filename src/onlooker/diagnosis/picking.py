"""How a learner picks, and what a system does beside it.

*Exploration* is the share of picks that are not the best guess, the arm that the estimated policy scores highest.
Every other pick counts as exploration, whatever made the learner pick it: chance, optimism, a rule. So the picks of a
softmax policy that are not its likeliest arm are exploration too.

*Two policies at once*, as with A/B buckets or a fallback that nobody logged: two policies and random picks are fitted
to every other round and compared, on the rest, with one policy, random picks and habits of position. How one policy
picks among the arms that it orders is left open: softmax picks of any decisiveness, several of them in turn, or fixed
chances of the best arm, the second and so on.

*Rules* that pick regardless, and arms that are withdrawn: the picks at each position are compared with what the policy
expects there. Positions that stand for arms, as in a log of contexts, show arms that are forced or capped; else they
show slots that are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from onlooker.base.defaults import L2
from onlooker.base.numerics import UNIDENTIFIED, inverse, normal_reach
from onlooker.base.types import Index, Matrix, Vector
from onlooker.diagnosis.movement import RIDGE, Pull
from onlooker.diagnosis.predictability import proportion, proportion_of
from onlooker.imitation.newton import Fit, minimise
from onlooker.imitation.softmax import SoftmaxObjective
from onlooker.imitation.stretches import FAST, LATE, LEAST_WEIGHT, explain, fit_policy
from onlooker.logs import ragged
from onlooker.logs.log import BanditLog
from onlooker.observers.dynamic.smoother import best_guesses

DRAWS = 10
"""Policies as plausible as the estimate, by which its error is judged, always the same ones."""

BLOCKS = 30
"""Parts of the log by whose scatter a trend or an excess is judged: picks close in time may be alike."""

NOW_ROUNDS = 100
"""The last 30% of the rounds are now, at least so many."""

TIED = 1e-9
"""Scores that differ by less than this part of the largest are those of arms that are alike."""

PLAUSIBLE = 0.05
"""Likelihood, relative to the best, from which on an explanation of the picks counts for the interval."""

Trend = Literal["rising", "falling", "steady"]


@dataclass(frozen=True, kw_only=True)
class Exploration:
    """How it picks now; None where there is no best guess to compare with."""

    share: float | None = None
    """Share of picks, in the last 30% of the rounds since the learner is stable, that are not its best guess."""
    low: float | None = None
    """Lower end of its interval, which includes the error of the estimated policy."""
    high: float | None = None
    """Upper end."""
    trend: Trend | None = None
    """Whether that share rises or falls over these rounds, beyond chance and beyond what the offers explain."""


def find_exploration(log: BanditLog, others: Matrix, pull: Pull, level: float, *, since: int) -> Exploration:
    """Compare the picks of rounds that one policy explains with what it prefers; those before `since` do not count.

    Arms that are alike are as good as each other: each of them is the best guess where one is.
    """
    scores = log.features @ pull.fit.theta
    least = np.maximum.reduceat(scores, log.offsets[:-1]) - TIED * float(np.abs(scores).max())
    missed = scores[log.chosen_rows] < least
    n_best = np.add.reduceat(scores >= np.repeat(least, log.n_arms), log.offsets[:-1], dtype=np.int64)
    now = slice(log.n_rounds - _recent(log.n_rounds - since), None)
    found = proportion(missed[now], level)
    doubt = _doubt(log[now], pull, log.n_rounds)
    mixture = explain(log, scores, others, np.array([0, log.n_rounds]), steps=8)
    return Exploration(
        share=found.value,
        low=min(found.value, max(0.0, found.low - doubt)),
        high=max(found.value, min(1.0, found.high + doubt / 2)),
        trend=_trend((missed - (1 - n_best * mixture.best))[since:], level),
    )


def find_followed(log: BanditLog, others: Matrix, pull: Pull, level: float, *, since: int) -> Exploration:
    """The same for a learner that moves: its best guess is that of the round, by the weights that it had then.

    Those are followed without a model of how it learns. What they leave open is in the interval: every combination of
    noise and error that explains the picks about as well as the best one.
    """
    found = best_guesses(log, since)
    now = found.rounds >= log.n_rounds - _recent(log.n_rounds - since)
    weights, n_now = found.weights, int(np.count_nonzero(now))
    shares = found.missed[:, now].mean(axis=1)
    plausible = shares[weights >= PLAUSIBLE * weights.max()]
    least, most = (proportion_of(float(end), n_now, level) for end in (plausible.min(), plausible.max()))
    best = explain(log, log.features @ pull.fit.theta, others, np.array([0, log.n_rounds]), steps=8).best
    return Exploration(
        share=float(weights @ shares),
        # Less than half a round is none.
        low=least.low if least.low * n_now >= 0.5 else 0.0,
        high=most.high,
        trend=_trend(weights @ found.missed - (1 - best)[found.rounds], level),
    )


def _recent(n_rounds: int) -> int:
    """How many rounds of so many are now."""
    return max(round((1 - LATE) * n_rounds), min(NOW_ROUNDS, n_rounds))


def _doubt(now: BanditLog, pull: Pull, n_rounds: int) -> float:
    """In how many of the rounds another arm may be the best, as the policy is only estimated.

    Chance is that of the rounds: what each pulls the weights by counts more or less. So neither the order of arms nor
    that of features matters.
    """
    theta, turn = pull.fit.theta, _inverse(now, pull) / (now.n_rounds * n_rounds) ** 0.5
    residuals = pull.mixture.residuals[-len(now.features) :]
    best = ragged.argmax(now.features @ theta, now.offsets)
    noise = np.random.default_rng(0).standard_normal((DRAWS, now.n_rounds))
    pulls = (now.features.T @ (np.repeat(one, now.n_arms) * residuals) for one in noise)
    others = (theta + turn @ one for one in pulls)
    return float(np.mean([(ragged.argmax(now.features @ other, now.offsets) != best).mean() for other in others]))


def _inverse(log: BanditLog, pull: Pull) -> Matrix:
    """Of the mean information of some rounds."""
    weights = np.maximum(pull.mixture.own[-log.n_rounds :], LEAST_WEIGHT)
    information = SoftmaxObjective(log, l2=0.0, weights=weights).evaluate(pull.fit.theta).hessian * weights.mean()
    return inverse(information + RIDGE * np.diag(np.diag(information)), flat=UNIDENTIFIED)


def _trend(excess: Vector, level: float) -> Trend:
    """Compare the last 30% of the rounds with the first 30%, by the scatter of blocks."""
    blocks = [float(block.mean()) for block in np.array_split(excess, min(BLOCKS, max(2, len(excess) // 20)))]
    part = max(1, round((1 - LATE) * len(blocks)))
    early, late = np.array(blocks[:part]), np.array(blocks[-part:])
    spread = float(np.sqrt((early.var() + late.var()) / max(1, part - 1)))
    chance = float(excess.std()) * (2 / (part / len(blocks) * len(excess))) ** 0.5
    reach, gap = normal_reach(level) * max(spread, chance), float(late.mean() - early.mean())
    if abs(gap) <= reach:
        return "steady"
    return "rising" if gap > 0 else "falling"


STEPS = 20
"""Times that shares and policies are estimated in turn."""
DECISIVE = (0.25, 0.5, 1.0, 2.0, 4.0, 16.0, 64.0)
"""One policy may be so many times as decisive as its fit, or several of these in turn."""
RANKS = 10
"""Arms from the best one on that have a chance of their own where one policy picks by rank; later ones share one."""
SHARE_STEPS = 100
"""Times that the shares of one policy's ways to pick are estimated."""
GAIN_BLOCKS = 20
"""Parts of the log by whose scatter the gain is judged."""
PROVED = 3.0
"""Standard errors of the gain, over blocks, from which on two policies are proved."""
LEAST_GAIN = 0.01
"""What two policies have to predict better, as a part of what one predicts."""
LEAST_SHARE = 0.08
"""Share of rounds from which on a second policy is mentioned."""
MOST_ALIKE = 0.7
"""Two policies whose best arms are the same in more of the rounds are one, with noise that is not softmax."""
LEAST_ROUNDS, PER_DIRECTION, MOST_ROUNDS = 600, 40, 3000
"""Rounds that are needed, at all and for every direction of theta; and rounds that are looked at."""


@dataclass(frozen=True, kw_only=True)
class TwoPolicies:
    """What a second policy adds."""

    share: float
    """Of rounds that it makes the picks of."""
    gain: float
    """Log-probability of a held-out pick above that of one policy, as a part of what one predicts."""
    z: float
    """The same in standard errors."""
    alike: float
    """Share of rounds in which both policies have the same best arm."""

    @property
    def proved(self) -> bool:
        """Whether to say so."""
        clear = self.z >= PROVED and self.gain >= LEAST_GAIN
        return clear and self.share >= LEAST_SHARE and self.alike <= MOST_ALIKE


def enough_for_two(n_rounds: int, rank: int) -> bool:
    """Whether so many rounds are enough to look for a second policy."""
    return n_rounds >= max(LEAST_ROUNDS, PER_DIRECTION * rank)


def find_two_policies(log: BanditLog, others: Matrix) -> TwoPolicies:
    """Fit one policy and two to every other round, and compare them on the rest, both ways.

    Examples
    --------
    >>> from onlooker.imitation.stretches import other_ways
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5, 3))
    >>> first, second = (X @ theta for theta in ([3.0, 1.0, 0.0], [-1.0, 0.0, 3.0]))
    >>> noise = rng.gumbel(size=(2000, 5))
    >>> both = np.where((rng.random(2000) < 0.3)[:, None], second, first)
    >>> for scores in (first, both):
    ...     log = BanditLog.from_dense(X, (scores + noise).argmax(axis=1))
    ...     found = find_two_policies(log, other_ways(log))
    ...     print(found.proved, round(found.share, 1) if found.proved else "")
    False
    True 0.3
    """
    gain, single, shares, alike = np.zeros(log.n_rounds), np.empty(log.n_rounds), [], []
    rows = np.repeat(np.arange(log.n_rounds) % 2, log.n_arms)
    for half in range(2):
        train, test = log[1 - half :: 2], log[half::2]
        ways, other_half = others[:, rows == 1 - half], others[:, rows == half]
        one, _ = fit_policy(train, ways)
        known = explain(train, train.features @ one.theta, ways, np.array([0, train.n_rounds]))
        found = _two(train, one, known.own, ways)
        sharper, own = _alone(train, found[0], ways)
        # Where many picks are random, the first try may end with one policy that does some of them.
        tries = (found, _two(train, sharper, own, ways))
        first, second, parts = max(tries, key=lambda two: float(np.log(_both(train, two, ways)).sum()))
        both = _both(test, (first, second, parts), other_half)
        softly = known.shares[0], one.theta * float(known.scale[0])
        base = _best_one(train, test, softly, (one, sharper, first, second), ways, other_half)
        gain[half::2], single[half::2] = np.log(both) - np.log(base), np.log(base * test.n_arms)
        shares.append(float(min(parts[:2])))
        best = [ragged.argmax(test.features @ fit.theta, test.offsets) for fit in (first, second)]
        alike.append(float((best[0] == best[1]).mean()))
        if gain.sum() <= 0:
            # The other half could not prove it any more.
            return TwoPolicies(share=shares[0], gain=0.0, z=0.0, alike=alike[0])
    blocks = np.array([part.mean() for part in np.array_split(gain, GAIN_BLOCKS)])
    error = max(float(blocks.std(ddof=1)) / GAIN_BLOCKS**0.5, 1e-12)
    return TwoPolicies(
        share=float(np.mean(shares)),
        gain=float(gain.mean()) / max(float(single.mean()), 1e-12),
        z=float(gain.mean()) / error,
        alike=float(np.mean(alike)),
    )


def _both(log: BanditLog, two: tuple[Fit, Fit, Vector], others: Matrix) -> Vector:
    """Probability of each pick under two policies, random picks and habits."""
    first, second, parts = two
    return np.asarray(_probabilities(log, (first.theta, second.theta), others)[log.chosen_rows] @ parts)


def _best_one(
    train: BanditLog,
    test: BanditLog,
    softly: tuple[Vector, Vector],
    fits: tuple[Fit, ...],
    ways: Matrix,
    others: Matrix,
) -> Vector:
    """Probability of each pick of `test` under the one policy, of several found on `train`, that predicts them best.

    `softly` are the shares and weights of a softmax policy. It may choose on the rounds that it is judged by: what two
    policies are compared with is rather too good.
    """
    shares, theta = softly
    own = _softly(test, theta)
    plain = np.vstack([own, others])[:, test.chosen_rows].T @ shares
    found = [plain, *(_one(train, test, fit.theta, ways, others) for fit in fits)]
    return max(found, key=lambda given: float(np.log(given).sum()))


def _one(train: BanditLog, test: BanditLog, theta: Vector, ways: Matrix, others: Matrix) -> Vector:
    """Probability of each pick of `test` under one policy, random picks and habits, whose shares `train` gives.

    The policy is softmax of any decisiveness, several of them in turn, or picks by rank.
    """
    counts = np.bincount(_ranks(train, theta)[train.chosen_rows], minlength=RANKS + 1) + UNSEEN
    offered = np.bincount(_ranks(train, theta), minlength=RANKS + 1) / train.n_rounds
    worth = counts / np.maximum(offered, 1 / train.n_rounds)
    seen, unseen = (_spread(log, theta, worth, rest) for log, rest in ((train, ways), (test, others)))
    shares = np.full(seen.shape[1], 1 / seen.shape[1])
    for _ in range(SHARE_STEPS):
        joint = seen * shares
        shares = (joint / joint.sum(axis=1, keepdims=True)).sum(axis=0) + UNSEEN
        shares /= shares.sum()
    return np.asarray(unseen @ shares)


UNSEEN = 0.5
"""Rounds that every way to pick is assumed to have made beside those that look like its own."""


LOWEST = -100.0
"""Scores so far below the best are as good as impossible; their exponentials are numbers still."""


def _softly(log: BanditLog, theta: Vector) -> Vector:
    """Probability of every row under a softmax policy that may be as decisive as any."""
    scores = np.asarray(log.features @ theta, dtype=np.float64)
    below = scores - np.repeat(np.maximum.reduceat(scores, log.offsets[:-1]), log.n_arms)
    return ragged.softmax(np.maximum(below, LOWEST), log.offsets)


def _spread(log: BanditLog, theta: Vector, worth: Vector, others: Matrix) -> Matrix:
    """Probability of each pick in every way that one policy may pick, shape (N, ways)."""
    rows, by_rank = log.chosen_rows, worth[_ranks(log, theta)]
    softly = [_softly(log, times * theta)[rows] for times in DECISIVE]
    ranked = by_rank[rows] / np.add.reduceat(by_rank, log.offsets[:-1])
    return np.column_stack([*softly, ranked, *others[:, rows]])


def _ranks(log: BanditLog, theta: Vector) -> Index:
    """Of every row by its score in its round: 0 is the best, and `RANKS` the last that is told apart."""
    rounds = np.repeat(np.arange(log.n_rounds), log.n_arms)
    order = np.lexsort((-(log.features @ theta), rounds))
    ranks = np.empty(len(rounds), dtype=np.int64)
    ranks[order] = np.minimum(ragged.positions(log.offsets), RANKS)
    return ranks


def _alone(log: BanditLog, near: Fit, others: Matrix) -> tuple[Fit, Vector]:
    """One policy beside random picks and habits, found as `_two` finds two; and how much each pick looks like its own.

    `fit_policy` may end with a policy that is hardly decisive and never random, though a decisive one that is often
    random explains the picks better.
    """
    rows, fit, shares, own = log.chosen_rows, near, np.array([0.7, 0.2, 0.05, 0.05]), np.ones(log.n_rounds)
    for _ in range(STEPS):
        given = _softly(log, fit.theta)[rows]
        joint = np.column_stack([given, *others[:, rows]]) * shares
        ways = joint / joint.sum(axis=1, keepdims=True)
        shares = ways.sum(axis=0) + UNSEEN
        shares /= shares.sum()
        own = ways[:, 0]
        fit = _fit(log, own, fit)
    return fit, own


def _probabilities(log: BanditLog, thetas: tuple[Vector, Vector], others: Matrix) -> Matrix:
    """Of every row under both policies, at random and by habit, shape (R, 5)."""
    policies = [_softly(log, theta) for theta in thetas]
    return np.column_stack([*policies, *others])


def _two(log: BanditLog, one: Fit, own: Vector, others: Matrix) -> tuple[Fit, Fit, Vector]:
    """Two policies and the shares of all ways to pick; the second starts with the picks that the first explains least.

    By expectation and maximisation.
    """
    rows = log.chosen_rows
    given = ragged.softmax(log.features @ one.theta, log.offsets)
    surprise = np.maximum.reduceat(given, log.offsets[:-1])
    weights = 1.0 - own * given[rows] / surprise
    policies = [one, _fit(log, weights, one)]
    shares = np.array([0.6, 0.25, 0.05, 0.05, 0.05])
    for _ in range(STEPS):
        joint = _probabilities(log, (policies[0].theta, policies[1].theta), others)[rows] * shares
        ways = joint / joint.sum(axis=1, keepdims=True)
        shares = ways.sum(axis=0) + UNSEEN
        shares /= shares.sum()
        policies = [_fit(log, ways[:, place], policies[place]) for place in range(2)]
    return policies[0], policies[1], shares


def _fit(log: BanditLog, weights: Vector, near: Fit) -> Fit:
    return minimise(SoftmaxObjective(log, l2=L2, weights=np.maximum(weights, LEAST_WEIGHT)), near, tolerance=FAST)


CLEAR = 5.0
"""Standard errors from which on an excess is clear, at any of up to a hundred positions."""
LEAST_FORCED = 0.05
"""A rule that picks less often is not mentioned."""
LEAST_LOW = 100
"""Rounds in which a position has to be less than even, so that picks of it say something."""
LEAST_MISSING = 20.0
"""Picks that the policy expected of a position which was never picked again. By chance there are none in e^-20."""
MOST_POSITIONS = 1000
"""With more positions none of them is looked at."""


def find_forced(log: BanditLog, theta: Vector, share: float) -> Iterator[str]:
    """A sentence about picks at one position whatever is there, beside a policy with weights `theta`.

    The policy's picks are random in a `share` of rounds.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5, 2))
    >>> picks = (X @ [2.0, 1.0] + rng.gumbel(size=(2000, 5))).argmax(axis=1)
    >>> log = BanditLog.from_dense(X, picks)
    >>> list(find_forced(log, np.array([2.0, 1.0]), 0.0))
    []
    >>> pinned = BanditLog.from_dense(X, np.where(rng.random(2000) < 0.2, 3, picks))
    >>> [one[:53] for one in find_forced(pinned, np.array([2.0, 1.0]), 0.0)]
    ['about 22% of the picks are at position 3 whatever its']
    """
    n_positions, sizes = int(log.n_arms.max()), log.n_arms
    if n_positions > MOST_POSITIONS:
        return
    place, expected = ragged.positions(log.offsets), _expected(log, theta, share)
    # Where the policy prefers the position, a rule would hardly show.
    low = expected < 1 / np.repeat(sizes, sizes)
    picked = np.zeros(len(expected))
    picked[log.chosen_rows] = 1.0
    block = np.repeat(np.arange(log.n_rounds) * BLOCKS // log.n_rounds, sizes)
    excess = _sums(block, place, (picked - expected) * low, n_positions)
    open_to_it = np.bincount(place, (1 - expected) * low, n_positions)
    total, spread = excess.sum(axis=0), excess.std(axis=0, ddof=1) * BLOCKS**0.5
    forced = total / np.maximum(open_to_it, 1.0)
    enough = np.bincount(place, low, n_positions) >= LEAST_LOW
    clear = np.flatnonzero(enough & (forced >= LEAST_FORCED) & (total > CLEAR * np.maximum(spread, 1.0)))
    if len(clear):
        top = int(clear[forced[clear].argmax()])
        yield _forced(top, float(forced[top]))


def find_withdrawn(log: BanditLog, theta: Vector, share: float, rounds: Index) -> Iterator[str]:
    """A sentence about positions that were picked, and from some round on never again, against what a policy expects.

    `rounds` gives the rounds of the log as it was given.
    """
    n_positions = int(log.n_arms.max())
    if n_positions > MOST_POSITIONS:
        return
    place, expected = ragged.positions(log.offsets), _expected(log, theta, share)
    last = np.full(n_positions, -1)
    last[log.chosen] = np.arange(log.n_rounds)  # of several rounds the last one stays
    later = np.repeat(np.arange(log.n_rounds), log.n_arms) > last[place]
    missing = np.bincount(place, expected * later, n_positions)
    gone = np.flatnonzero((last >= 0) & (missing >= LEAST_MISSING))
    if len(gone):
        top = int(gone[missing[gone].argmax()])
        yield _withdrawn(top, len(gone), int(rounds[last[top]]), float(missing[top]))


def _expected(log: BanditLog, theta: Vector, share: float) -> Vector:
    """Probability of every row."""
    policy = ragged.softmax(log.features @ theta, log.offsets)
    return np.asarray((1 - share) * policy + share / np.repeat(log.n_arms, log.n_arms))


def _sums(block: Index, place: Index, values: Vector, n_positions: int) -> Matrix:
    """Sums by block and position."""
    found = np.bincount(block * n_positions + place, values, BLOCKS * n_positions)
    return np.asarray(found.reshape(BLOCKS, n_positions))


def _forced(position: int, share: float) -> str:
    """Of picks at one position whatever is there."""
    return (
        f"about {share:.0%} of the picks are at position {position} whatever its features: a pinned or forced pick "
        "beside the policy, or a feature that the log lacks. Leave such rounds out if they are known"
    )


def _withdrawn(position: int, count: int, last: int, missing: float) -> str:
    """Of positions that are not picked any more."""
    more = "" if count == 1 else f", and {count - 1} more like it"
    return (
        f"position {position} was offered but never picked after round {last:,}, though one policy for the whole log "
        f"expects about {missing:.0f} picks{more}: a cap or a rule beside the policy, or a change of what it values. "
        "Leave such offers out if it is a rule"
    )
