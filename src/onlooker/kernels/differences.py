"""How the arms of a round differ in some of their features."""

import numpy as np

from onlooker.base.types import Features, Index, Matrix
from onlooker.kernels.cached_njit import cached_njit

LAST_DIGITS = 1e-12
"""What differs by less than this fraction of itself was meant to be the same."""

_compiled = cached_njit()


@cached_njit(error_model="numpy")
def fill_differences(features: Features, offsets: Index, rows: Matrix, shares: Matrix) -> None:
    """Fill the features less their round's mean, and, unless it is empty, the same divided by the number of arms."""
    d = features.shape[1]
    mean, shared = np.empty(d), len(shares) > 0
    for t in range(len(offsets) - 1):
        first, stop = offsets[t], offsets[t + 1]
        n = np.float64(stop - first)
        # From the first arm, then from the mean: what all arms share leaves exactly nothing.
        mean[:] = 0.0
        for row in range(first, stop):
            for j in range(d):
                rows[row, j] = np.float64(features[row, j]) - np.float64(features[first, j])
                mean[j] += rows[row, j]
        for j in range(d):
            mean[j] /= n
        for row in range(first, stop):
            for j in range(d):
                rows[row, j] -= mean[j]
        if shared:
            for row in range(first, stop):
                for j in range(d):
                    shares[row, j] = rows[row, j] / n


@_compiled
def _more(features: Features, row: int, first: int, place: int) -> float:
    """What an arm has more of a feature than the first of its round."""
    here, there = np.float64(features[row, place]), np.float64(features[first, place])
    more = here - there
    return more if abs(more) > LAST_DIGITS * max(abs(here), abs(there)) else 0.0


@_compiled
def add_differences(features: Features, offsets: Index, places: Index, information: Matrix) -> None:
    """Add to `information`, at `places`, every round's mean outer product of what its arms have more than its first.

    Round after round, so that parts of a log add up to exactly what the whole does.
    """
    more = np.empty(len(places))
    for t in range(len(offsets) - 1):
        first, stop = offsets[t], offsets[t + 1]
        for row in range(first + 1, stop):
            for i in range(len(places)):
                more[i] = _more(features, row, first, places[i])
            for i in range(len(places)):
                if more[i] != 0.0:
                    scale = more[i] / (stop - first)
                    for j in range(len(places)):
                        information[places[i], places[j]] += scale * more[j]


@_compiled
def first_varying(features: Features, offsets: Index, places: Index, rounds: Index) -> None:
    """Fill the first round in which each of the features at `places` varies; the number of rounds if there is none."""
    rounds[:] = len(offsets) - 1
    left = len(places)
    for t in range(len(offsets) - 1):
        if left == 0:
            break
        first = offsets[t]
        for i in range(len(places)):
            row = first + 1
            while rounds[i] > t and row < offsets[t + 1]:
                if _more(features, row, first, places[i]) != 0.0:
                    rounds[i] = t
                    left -= 1
                row += 1
