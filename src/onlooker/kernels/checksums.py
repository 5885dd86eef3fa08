"""Checksums of the bits of arrays and of rounds, about as fast as memory can be read."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onlooker.kernels.cached_njit import cached_njit

_ODD = np.uint64(0x9E3779B97F4A7C15)
_LEFT, _RIGHT, _HALF = np.uint64(29), np.uint64(35), np.uint64(32)


@cached_njit()
def bits_checksum(words: NDArray[Any]) -> int:
    """Of unsigned integers, in their order: any change of one of them changes it.

    Four sums are kept side by side, as each step of one has to wait for the step before. A step is one-to-one, so two
    different arrays of the same length agree by chance alone, once in 2^64.
    """
    a, b, c, d = _ODD, _ODD + np.uint64(1), _ODD + np.uint64(2), _ODD + np.uint64(3)
    whole = len(words) // 4 * 4
    for i in range(0, whole, 4):
        a = _step(a, words[i])
        b = _step(b, words[i + 1])
        c = _step(c, words[i + 2])
        d = _step(d, words[i + 3])
    for i in range(whole, len(words)):
        a = _step(a, words[i])
    return int(_step(_step(_step(_step(np.uint64(len(words)), a), b), c), d))


@cached_njit()
def round_checksums(words: NDArray[Any], offsets: NDArray[Any], chosen: NDArray[Any], found: NDArray[Any]) -> None:
    """Of every round: its number of arms, its pick, and the bits of its features, one row an arm, not all 0."""
    for t in range(len(chosen)):
        first, last = offsets[t], offsets[t + 1]
        total = _step(_step(_ODD, np.uint64(last - first)), np.uint64(chosen[t]))
        for i in range(first, last):
            total = _step(total, np.uint64(i - first))
            for j in range(words.shape[1]):
                if words[i, j]:
                    total = _step(total, np.uint64(words[i, j]) | (np.uint64(j + 1) << _HALF))
        # Bits of the last words reach all of the number.
        total ^= total >> _HALF
        total *= _ODD
        found[t] = total ^ (total >> _LEFT)


@cached_njit(inline="always")
def _step(total: Any, word: Any) -> Any:
    mixed = total ^ np.uint64(word)
    return ((mixed << _LEFT) | (mixed >> _RIGHT)) * _ODD
