"""The smoother: rounds that were followed, gone through again with the picks before and after each of them.

It finds what the weights were in every round, where they jumped, and which picks were the learner's best guess. It
follows the member of the bank that predicted best, its step size that which makes the rounds most probable, one step
ahead. Beliefs of shape (d, d) are kept at the start of every stretch of rounds alone; within a stretch they are made
again when it is its turn.

The weights of a round are known with an error only. So a pick that is not the best of the estimated weights has two
explanations: the learner explored, or it followed weights a little different from these. Draws of the weights weigh one
against the other. How much of the scatter is the error of the weights (`WIDER`), and how much is noise around the
learner's own weights (`SHARPER`), is left open: each combination has a likelihood.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from onlooker.base.threads import ordered_map
from onlooker.base.types import Index, Matrix, Vector
from onlooker.logs.log import BanditLog
from onlooker.logs.parts import Parts, TakePart
from onlooker.observers.dynamic.follower import Bank, Follower
from onlooker.observers.dynamic.members import (
    PRIOR,
    Block,
    as_times,
    bank,
    copied,
    fresh_member,
    no_record,
    rows_in_units,
    run,
    scaled,
)

if TYPE_CHECKING:
    from onlooker.kernels.dynamic import Law, Member, Record

STRETCH = 512
"""Rounds of a stretch at most."""
STRETCH_BYTES = 1 << 25
"""Memory that the beliefs of a stretch may take."""
TUNING = 5000
"""So many rounds at the end decide on the step size."""
ENOUGH = 200
"""With fewer rounds the member's own step size stays."""
WIDEST = 4
"""Steps get at most 2 to the power of this times as large, or as small, as the member's."""
WIDER = (1.0, 1.5)
"""Standard deviations of the belief about a round's weights that a draw counts as one."""
SHARPER = (1.0, 1.5, 2.0, 3.0, 5.0, 8.0, 16.0)
"""How many times as decisive picks are as the filter takes them to be: it counts its own error as their noise."""
ALIKE = 4.0
"""Rounds that count as one when combinations are weighed: beliefs err alike in neighbouring rounds, and are normal only
approximately. Softmax learners lose a hundred times as much by another `SHARPER` as gradient learners do."""
DRAWS, MORE_DRAWS = 32, 256
"""Weights that are drawn for a round, and for one whose pick is not the best of their mean: with few draws, none of
which has the pick as its best, the pick would look like exploration."""
TIE = 1e-9
"""Arms whose scores differ by less are both the best."""
MOST_ROUNDS = 2000
"""Rounds that are looked at, evenly spread."""


@dataclass(frozen=True, eq=False)
class Rounds:
    """Rounds that were followed."""

    log: BanditLog | Parts
    gaps: Vector
    """Before each of them."""
    before: Bank
    after: Bank

    @classmethod
    def of(cls, log: BanditLog | Parts, times: Vector | None, before: Bank | None, after: Bank) -> Rounds:
        """Rounds that were followed; None stands for what is believed before the first round."""
        start = Bank.start(after.units) if before is None else before
        gaps, _ = start.clock.gaps(after.n_rounds - start.n_rounds, times)
        return cls(log, gaps, start, after)

    @property
    def first(self) -> int:
        """Number of the first of them."""
        return self.before.n_rounds

    @property
    def n_rounds(self) -> int:
        """How many there are."""
        return self.after.n_rounds - self.before.n_rounds

    @property
    def best(self) -> int:
        """The member that predicted their picks best."""
        return int(np.argmax(self.after.totals - self.before.totals))

    @property
    def anchor(self) -> Matrix:
        """The weights that members revert to, shape (1, d): now that all is known, those at the end."""
        return self.after.members[0].mean[None]

    def take(self, start: int, stop: int) -> Block:
        """Some of them, all in one part, and the gap before the round that follows where there is one."""
        if isinstance(self.log, Parts):
            part = next(iter(self.log.run(TakePart(), start, stop)))
        else:
            part = self.log[start:stop]
        rows, picks, _ = rows_in_units(part, self.after.units)
        return Block(rows, picks, part.offsets, part.chosen, self.gaps[start : stop + 1], self.first + start)

    def stretches(self) -> list[tuple[int, int]]:
        """Where to cut them, so that the beliefs of a stretch fit into memory."""
        d = len(self.after.units)
        size = 4 * 8 * (d * d if self.after.members[0].spread.ndim == 2 else d)
        longest = min(max(STRETCH_BYTES // size, 16), STRETCH)
        if isinstance(self.log, Parts):
            sizes = [part.n_rounds for part in self.log.run(TakePart())]
        else:
            sizes = [self.log.n_rounds]
        bounds: list[tuple[int, int]] = []
        for count in sizes:
            done = bounds[-1][1] if bounds else 0
            stop = done + count
            bounds += [(start, min(start + longest, stop)) for start in range(done, stop, longest)]
        return bounds


@dataclass(frozen=True, eq=False)
class Stretch:
    """Some rounds with what is believed in each of them: means, and covariances or their diagonals."""

    start: int
    """The first of them, counted from the first of all that are smoothed."""
    block: Block
    ahead: tuple[Matrix, NDArray[np.float64]]
    """Means and spreads given the picks before each round."""
    seen: tuple[Matrix, NDArray[np.float64]]
    """And given its own too."""
    smoothed: tuple[Matrix, NDArray[np.float64]]
    """And given all picks."""


@dataclass(frozen=True, eq=False)
class Sites:
    """Where the choice model of each round is approximated by a normal one: at what the other rounds say of it."""

    means: Matrix
    """Of the weights and the logit of the share of random picks, shape (n, d + 1)."""
    flats: Vector
    """How much each arm's logit is flattened by the spread of the weights, one per row."""
    offsets: Index
    """Of the rounds in these."""

    @property
    def size(self) -> float:
        """Variance of a typical arm's score under the largest weights."""
        return float(np.square(self.means[:, :-1]).sum(axis=1).max())

    def of(self, start: int, stop: int) -> tuple[Matrix, Vector]:
        """Those of a stretch."""
        return self.means[start:stop], self.flats[self.offsets[start] : self.offsets[stop]]


def smooth_probabilities(rounds: Rounds, probabilities: Vector) -> None:
    """Fill how probable each arm was, given the picks before and after its round, but not the round's own."""
    from onlooker.kernels.dynamic import fill_probabilities

    end = len(probabilities)
    for _, block, means, spreads in beliefs_without_own(rounds):
        found = np.empty(len(block.rows))
        fill_probabilities(block.rows, block.offsets, means, spreads, found)
        probabilities[end - len(found) : end] = found
        end -= len(found)


def beliefs_without_own(rounds: Rounds) -> Iterator[tuple[int, Block, Matrix, NDArray[np.float64]]]:
    """Every stretch, the last one first: its first round, its rounds, means and spreads without each round's pick."""
    for one in backwards(rounds, tuned_law(rounds), rounds.best):
        yield one.start, one.block, *without_own(one)


def without_own(one: Stretch) -> tuple[Matrix, NDArray[np.float64]]:
    """Smoothed beliefs less what each round's own pick added: information before and after it, taken apart."""
    if one.smoothed[1].ndim == 2:
        means = np.stack([one.smoothed[0], one.seen[0], one.ahead[0]])
        precisions = 1.0 / np.stack([one.smoothed[1], one.seen[1], one.ahead[1]])
        parts = precisions * means
        precision = precisions[0] - (precisions[1] - precisions[2])
        return (parts[0] - (parts[1] - parts[2])) / precision, 1.0 / precision
    precisions = np.linalg.inv(np.stack([one.smoothed[1], one.seen[1], one.ahead[1]]))
    means = np.stack([one.smoothed[0], one.seen[0], one.ahead[0]])
    parts = np.einsum("sijk,sik->sij", precisions, means)
    spreads = np.linalg.inv(precisions[0] - (precisions[1] - precisions[2]))
    return np.einsum("ijk,ik->ij", spreads, parts[0] - (parts[1] - parts[2])), np.ascontiguousarray(spreads)


def backwards(rounds: Rounds, law: Law, which: int, sites: Sites | None = None) -> Iterator[Stretch]:
    """Every stretch, smoothed, the last one first; the member of this number moves by the law."""
    from onlooker.kernels.dynamic import smooth_diagonal, smooth_full

    stretches, starts = rounds.stretches(), []
    member, none = first_member(rounds, which, sites), no_record(len(rounds.after.units))
    for bounds in stretches:
        starts.append(copied(member))
        follow(rounds, bounds, law, member, none, sites)
    after: tuple[Vector, Matrix] | None = None
    for bounds, start in zip(reversed(stretches), reversed(starts), strict=True):
        n = bounds[1] - bounds[0]
        record = _room(none, n + (after is not None))
        block, _ = follow(rounds, bounds, law, start, record, sites)
        seen = record.later_means[:n].copy(), record.later_spreads[:n].copy()
        if after is not None:
            record.later_means[n], record.later_spreads[n] = after
        (smooth_diagonal if record.spreads.ndim == 2 else smooth_full)(record, law, block.first, block.gaps)
        after = record.later_means[0].copy(), record.later_spreads[0].copy()
        yield Stretch(
            start=bounds[0],
            block=block,
            ahead=(record.means[:n], record.spreads[:n]),
            seen=seen,
            smoothed=(record.later_means[:n], record.later_spreads[:n]),
        )


def first_member(rounds: Rounds, which: int, sites: Sites | None = None) -> Member:
    """What a member believes before the first of the rounds."""
    from onlooker.kernels.dynamic import AGE

    member = copied(rounds.before.members[which])
    if sites is not None and not rounds.first:
        # What is believed before the first pick may be as large as the weights turn out to be; and ridge regression
        # with a ridge of one begins as if it had seen as many rounds as there are features, of arms of length one.
        member.spread[:-1, :-1] *= max(1.0, sites.size / PRIOR)
        member.inverse[...] *= min(1.0, AGE / len(rounds.after.units))
    return member


def follow(
    rounds: Rounds, bounds: tuple[int, int], law: Law, member: Member, record: Record, sites: Sites | None = None
) -> tuple[Block, float]:
    """Move a member on through a stretch; give its rounds, and their log-probability."""
    block = rounds.take(*bounds)
    logs, arms = np.empty(len(block.chosen)), np.empty(len(block.rows))
    run(law, member, block, rounds.anchor, record, arms, logs, None if sites is None else sites.of(*bounds))
    return block, float(logs.sum())


def _room(like: Record, n: int) -> Record:
    return type(like)(*(np.empty((n, *array.shape[1:])) for array in like))


def tuned_law(rounds: Rounds) -> Law:
    """The law of the member that predicted best, its steps as large as the picks ask for."""
    d = len(rounds.after.units)
    law = bank(d)[rounds.best]
    if rounds.best == 0 or rounds.n_rounds < ENOUGH:
        return law
    blocks = [rounds.take(*one) for one in rounds.stretches() if one[1] > rounds.n_rounds - TUNING]
    first = rounds.before.members[rounds.best] if blocks[0].first == rounds.first else fresh_member(d, law)
    found: dict[int, float] = {}

    def evidence(power: int) -> float:
        member, total = copied(first), 0.0
        for block in blocks:
            logs, arms = np.empty(len(block.chosen)), np.empty(len(block.rows))
            run(scaled(law, 2.0**power), member, block, rounds.anchor, no_record(d), arms, logs)
            total += float(logs.sum())
        return total

    place = 0
    while True:
        near = [one for one in (place - 1, place, place + 1) if one not in found and abs(one) <= WIDEST]
        found.update(zip(near, ordered_map(evidence, near), strict=True))
        top = max(found, key=lambda one: (found[one], -abs(one)))
        if top == place:
            return scaled(law, 2.0 ** _peak(found, place))
        place = top


def _peak(found: dict[int, float], place: int) -> float:
    """Where a parabola through the best power and its neighbours is highest.

    Examples
    --------
    >>> _peak({-1: -4.0, 0: -1.0, 1: -2.0}, 0)
    0.25
    """
    if place - 1 not in found or place + 1 not in found:
        return float(place)
    low, here, high = (found[place + shift] for shift in (-1, 0, 1))
    bend = low - 2 * here + high
    return place + (0.5 * (low - high) / bend if bend < 0 else 0.0)


@dataclass(frozen=True, kw_only=True, eq=False)
class Guesses:
    """Whether picks were best guesses, under each combination of `WIDER` and `SHARPER`."""

    rounds: Index
    """The rounds that were looked at, in order, shape (n,)."""
    missed: Matrix
    """Probability that the pick of each was not the best guess, shape (combinations, n)."""
    log_probabilities: Matrix
    """Log-probability of the pick of each, given all other picks, same shape."""

    @property
    def weights(self) -> Vector:
        """How much each combination counts by the picks of these rounds, shape (combinations,); they sum to 1."""
        total = self.log_probabilities.sum(axis=1) / ALIKE
        found = np.exp(total - total.max())
        return np.asarray(found / found.sum())


def best_guesses(log: BanditLog, since: int = 0, most: int = MOST_ROUNDS) -> Guesses:
    """Follow the learner through a log, and look at `most` of the rounds from `since` on.

    Examples
    --------
    >>> from onlooker import Environment, EpsilonGreedy, simulate
    >>> log = simulate(Environment(5, 10), EpsilonGreedy(0.2), n_rounds=1500).log
    >>> found = best_guesses(log, since=1000)
    >>> round(float(found.weights @ found.missed.mean(axis=1)), 1)
    0.2
    """
    times, follower = as_times(None, log), Follower(log.n_features)
    follower.follow(log, times)
    wanted = np.unique(np.linspace(since, log.n_rounds - 1, min(most, log.n_rounds - since)).astype(np.int64))
    normal = np.random.default_rng(0).standard_normal((MORE_DRAWS, log.n_features + 1))
    shape = len(WIDER) * len(SHARPER), len(wanted)
    missed, logs = np.empty(shape), np.empty(shape)
    for start, block, means, spreads in beliefs_without_own(Rounds.of(log, times, None, follower.bank)):
        if start + len(means) <= since:
            break
        here = np.flatnonzero((wanted >= start) & (wanted < start + len(means)))
        places = wanted[here] - start
        for at, place, root in zip(here.tolist(), places.tolist(), roots_of(spreads[places]), strict=True):
            rows = block.rows[block.offsets[place] : block.offsets[place + 1]]
            missed[:, at], logs[:, at] = _look(rows, int(block.chosen[place]), means[place], root, normal)
    return Guesses(rounds=wanted, missed=missed, log_probabilities=logs)


def _look(rows: Matrix, pick: int, mean: Vector, root: Vector | Matrix, normal: Matrix) -> tuple[Vector, Vector]:
    """For one round: the probability that the pick was not the best guess, and the log-probability of the pick."""
    middle = rows @ mean[:-1]
    normal = normal[: DRAWS if middle[pick] >= middle.max() - TIE else MORE_DRAWS]
    away = normal * root if root.ndim == 1 else normal @ root
    random = 1.0 / (1.0 + np.exp(-mean[-1]))
    found = []
    for wider in WIDER:
        scores = (mean[:-1] + wider * away[:, :-1]) @ rows.T
        below = scores - scores.max(axis=1, keepdims=True)
        weights = _powers(np.exp(below / 2))
        given = (1.0 - random) * weights[:, :, pick] / weights.sum(axis=2) + random / len(rows)
        found.append((given @ (below[:, pick] < -TIE) / given.sum(axis=1), np.log(given.mean(axis=1))))
    missed, logs = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return missed, logs


def _powers(half: Matrix) -> NDArray[np.float64]:
    """`exp(sharper * below)` for each of `SHARPER`, from `exp(below / 2)`: products take a tenth of the time."""
    one = half * half
    three = one * one * one
    five = three * one * one
    eight = five * three
    return np.stack([one, one * half, one * one, three, five, eight, eight * eight])


def roots_of(spreads: NDArray[np.float64]) -> NDArray[np.float64]:
    """Symmetric square roots of covariances, which change as smoothly as these do; of diagonals, their own."""
    if spreads.ndim == 2:
        return np.sqrt(spreads)
    values, vectors = np.linalg.eigh(spreads)
    found: NDArray[np.float64] = (vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]) @ vectors.transpose(0, 2, 1)
    return found
