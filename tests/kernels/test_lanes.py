"""Eight numbers at a time: each against what NumPy gives."""

import numpy as np
import pytest

from onlooker.kernels.cached_njit import cached_njit
from onlooker.kernels.lanes import (
    above,
    aligned,
    all_of,
    exp,
    first_of,
    larger,
    largest,
    load,
    root,
    store,
    sums,
    total,
    whole_lanes,
)


@cached_njit(error_model="numpy")
def all_signs(a, b, out):
    x, y = load(a, 0), load(b, 0)
    store(out, 0, x + y)
    store(out, 8, x - y)
    store(out, 16, x * y)
    store(out, 24, x / y)
    store(out, 32, root(y))
    store(out, 40, larger(x, y))
    store(out, 48, above(x, y, all_of(3.0)))
    store(out, 56, first_of(3, x, y))
    store(out, 64, sums(x, y, x + y, x * y, x - y, y, x, y))
    return total(x), largest(y)


@cached_njit(error_model="numpy")
def exponentials(values, out):
    for k in range(0, len(values), 8):
        store(out, k, exp(load(values, k)))


def test_signs_and_functions():
    source = np.random.default_rng(0)
    x, y, out = source.standard_normal(8), source.exponential(size=8), np.empty((9, 8))
    added, most = all_signs(x, y, out)
    expected = [x + y, x - y, x * y, x / y, np.sqrt(y), np.maximum(x, y), 3.0 * (x > y), np.append(x[:3], y[3:])]
    expected.append([one.sum() for one in (x, y, x + y, x * y, x - y, y, x, y)])
    np.testing.assert_allclose(out, np.array(expected), rtol=1e-14, atol=1e-15)
    assert added == pytest.approx(x.sum(), rel=1e-14)
    assert most == y.max()


def test_exponentials_down_to_the_smallest_number():
    values = np.append(np.linspace(-745.0, 0.0, 4000), [-np.inf, -1e9, -745.1, -708.4, -700.0, -1e-300, -0.5, -746.0])
    found = np.empty(len(values))
    exponentials(values, found)
    np.testing.assert_allclose(found, np.exp(values), rtol=5e-16, atol=5e-324)


def test_room_in_whole_lanes():
    assert [whole_lanes(n) for n in (0, 1, 8, 9)] == [0, 8, 8, 16]
    room = aligned(24)
    assert room.shape == (24,)
    assert room.ctypes.data % 64 == 0
    assert not room.any()
