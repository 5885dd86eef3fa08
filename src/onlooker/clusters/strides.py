"""How far apart the rounds of a sample must be, found where the rounds are: so none are sent in vain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onlooker.log import BanditLog
from onlooker.parts import Parts
from onlooker.types import Index


@dataclass(frozen=True)
class RowsByStride:
    """Bytes of a row, and how many rows every `2**j`-th round of the log has in a part, for `j` below `levels`."""

    levels: int

    def __call__(self, part: BanditLog, first: int) -> tuple[int, Index]:
        """Count the rows of a part that begins at round `first`."""
        sizes, strides = part.n_arms, [1 << level for level in range(self.levels)]
        rows = [int(sizes[-first % stride :: stride].sum()) for stride in strides]
        return part.features.dtype.itemsize * part.n_features, np.array(rows)


def stride_for(parts: Parts, n_rounds: int, n_bytes: int) -> int:
    """Smallest power of 2 such that every so-many-th of the rounds take no more than `n_bytes`.

    An `EvenSample` of that size would end with this stride, or with a larger one: begun with it, it gives the same.
    """
    width, total = 0, np.zeros(max(1, n_rounds.bit_length()), dtype=np.int64)
    for row, rows in parts.run(RowsByStride(len(total))):
        # Of parts in float32 and in float64 the narrower: a stride too small is mended by the sample.
        width = min(width, row) if width else row
        total += rows
    fits = np.flatnonzero(total <= max(1, n_bytes // max(1, width)))
    return 1 << int(fits[0] if len(fits) else len(total) - 1)
