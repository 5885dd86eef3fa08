"""The smoother: what the weights were in every round, given the picks before and after it; and where they jumped.

It follows the member of the bank that predicted best, its step size fitted to the rounds. Beliefs of shape (d, d) are
kept at the start of every stretch of rounds alone; within a stretch they are made again when it is its turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from onlooker.base.types import Matrix, Vector
from onlooker.observers.dynamic.bank import Block, copied, no_record, run
from onlooker.observers.dynamic.changes import Jumps
from onlooker.observers.dynamic.path import WeightPath, checkpoints_between
from onlooker.observers.dynamic.rounds import Rounds
from onlooker.observers.dynamic.tuning import tuned_law

if TYPE_CHECKING:
    from onlooker.kernels.dynamic import Record


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


def smooth_path(
    rounds: Rounds, wanted: Sequence[int] | None, centring: Matrix | None = None
) -> tuple[WeightPath, tuple[int, ...]]:
    """The weights at checkpoints, and the rounds at which they jumped; `centring` takes weights to what is shown."""
    first, units = rounds.first, rounds.after.units
    checkpoints = checkpoints_between(first, first + rounds.n_rounds, wanted)
    theta, errors = np.empty((2, len(checkpoints), len(units)))
    jumps = Jumps(rounds.n_rounds)
    for one in _backwards(rounds):
        means, spreads = one.smoothed
        for place, checkpoint in enumerate(checkpoints):
            t = checkpoint - 1 - first - one.start
            if 0 <= t < len(means):
                theta[place], variances = _shown(means[t, :-1] / units, _spread(spreads[t], units), centring)
                errors[place] = np.sqrt(np.maximum(variances, 0.0))
        jumps.look(one.start, one.ahead, one.smoothed)
    path = WeightPath(rounds=np.array(checkpoints, dtype=np.int64), theta=theta, standard_error=errors)
    return path, tuple(first + one for one in jumps.found())


def _spread(spread: NDArray[np.float64], units: Vector) -> NDArray[np.float64]:
    """Variances or covariances of the weights of the features as they are; NaN for what never differed."""
    known = np.where(np.isinf(units), np.nan, units)
    found: NDArray[np.float64] = (
        spread[:-1] / known**2 if spread.ndim == 1 else spread[:-1, :-1] / np.outer(known, known)
    )
    return found


def _shown(theta: Vector, spread: NDArray[np.float64], centring: Matrix | None) -> tuple[Vector, Vector]:
    """Weights and their variances, as differences to the mean over the arms where each arm has its own."""
    own = spread if spread.ndim == 1 else np.diag(spread)
    if centring is None:
        return theta, own
    spread = np.nan_to_num(spread)
    variances = centring**2 @ spread if spread.ndim == 1 else np.diag(centring @ spread @ centring)
    return centring @ theta, np.where(np.isnan(own), np.nan, variances)


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
    for one in _backwards(rounds):
        yield one.start, one.block, *_without_own(one)


def _without_own(one: Stretch) -> tuple[Matrix, NDArray[np.float64]]:
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


def _backwards(rounds: Rounds) -> Iterator[Stretch]:
    """Every stretch, smoothed, the last one first."""
    from onlooker.kernels.dynamic import smooth_diagonal, smooth_full

    law, anchor, stretches = tuned_law(rounds), rounds.anchor, rounds.stretches()
    member, starts, none = copied(rounds.before.members[rounds.best]), [], no_record(len(rounds.after.units))
    for bounds in stretches:
        starts.append(copied(member))
        block = rounds.take(*bounds)
        run(law, member, block, anchor, none, np.empty(len(block.rows)), np.empty(len(block.chosen)))
    after: tuple[Vector, Matrix] | None = None
    for bounds, start in zip(reversed(stretches), reversed(starts), strict=True):
        block = rounds.take(*bounds)
        n = len(block.chosen)
        record = _room(none, n + (after is not None))
        run(law, start, block, anchor, record, np.empty(len(block.rows)), np.empty(n))
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


def _room(like: Record, n: int) -> Record:
    return type(like)(*(np.empty((n, *array.shape[1:])) for array in like))
