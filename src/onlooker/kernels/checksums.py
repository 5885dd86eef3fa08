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
    """Of every round: its number of arms, its pick, and the bits of its features, one row an arm, not all 0.

    Four rounds with as many arms side by side, as each step of one has to wait for the step before.
    """
    t = 0
    while t < len(chosen):
        n = offsets[t + 1] - offsets[t]
        alike = t + 4 <= len(chosen)
        for later in range(t + 1, t + 4 if alike else t):
            alike = alike and offsets[later + 1] - offsets[later] == n
        if not alike:
            total = _start(n, chosen[t])
            for k in range(n):
                total = _step(total, np.uint64(k))
                for j in range(words.shape[1]):
                    total = _word(total, words[offsets[t] + k, j], j)
            found[t] = _ended(total)
            t += 1
            continue
        a, b, c, d = offsets[t], offsets[t + 1], offsets[t + 2], offsets[t + 3]
        first, second = _start(n, chosen[t]), _start(n, chosen[t + 1])
        third, fourth = _start(n, chosen[t + 2]), _start(n, chosen[t + 3])
        for k in range(n):
            arm = np.uint64(k)
            first, second, third, fourth = _step(first, arm), _step(second, arm), _step(third, arm), _step(fourth, arm)
            for j in range(words.shape[1]):
                first, second = _word(first, words[a + k, j], j), _word(second, words[b + k, j], j)
                third, fourth = _word(third, words[c + k, j], j), _word(fourth, words[d + k, j], j)
        found[t], found[t + 1], found[t + 2], found[t + 3] = (
            _ended(first),
            _ended(second),
            _ended(third),
            _ended(fourth),
        )
        t += 4


@cached_njit(inline="always")
def _start(n: int, pick: int) -> Any:
    return _step(_step(_ODD, np.uint64(n)), np.uint64(pick))


@cached_njit(inline="always")
def _word(total: Any, word: Any, place: int) -> Any:
    """Take in one feature, unless it is 0."""
    return _step(total, np.uint64(word) | (np.uint64(place + 1) << _HALF)) if word else total


@cached_njit(inline="always")
def _ended(total: Any) -> Any:
    # Bits of the last words reach all of the number.
    total ^= total >> _HALF
    total *= _ODD
    return total ^ (total >> _LEFT)


@cached_njit(inline="always")
def _step(total: Any, word: Any) -> Any:
    mixed = total ^ np.uint64(word)
    return ((mixed << _LEFT) | (mixed >> _RIGHT)) * _ODD
