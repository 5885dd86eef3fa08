"""How the arms of a round differ in some of their features."""

import numpy as np

from onlooker.kernels.kept import kept
from onlooker.types import Features, Index, Matrix

LAST_DIGITS = 1e-12
"""What differs by less than this fraction of itself was meant to be the same."""

_compiled = kept()


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
                here, there = np.float64(features[row, places[i]]), np.float64(features[first, places[i]])
                more[i] = here - there
                if abs(more[i]) <= LAST_DIGITS * max(abs(here), abs(there)):
                    more[i] = 0.0
            for i in range(len(places)):
                if more[i] != 0.0:
                    scale = more[i] / (stop - first)
                    for j in range(len(places)):
                        information[places[i], places[j]] += scale * more[j]
