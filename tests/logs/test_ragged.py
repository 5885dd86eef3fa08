import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlooker.logs import ragged

ROUNDS = st.lists(st.lists(st.floats(-700, 700), min_size=1, max_size=6), min_size=1, max_size=10)


def flat(rounds):
    values = np.array([value for values in rounds for value in values], dtype=float)
    return values, np.cumsum([0, *map(len, rounds)])


@given(ROUNDS)
def test_argmax_finds_the_first_largest(rounds):
    assert ragged.argmax(*flat(rounds)).tolist() == [values.index(max(values)) for values in rounds]


@given(st.lists(st.lists(st.sampled_from([0.0, -0.0, 1.0]), min_size=1, max_size=6), min_size=1))
def test_argmax_breaks_ties_by_position(rounds):
    assert ragged.argmax(*flat(rounds)).tolist() == [values.index(max(values)) for values in rounds]


@given(ROUNDS)
def test_softmax_against_a_loop(rounds):
    found = ragged.softmax(*flat(rounds))
    expected = []
    for values in rounds:
        weights = [math.exp(value - max(values)) for value in values]
        expected += [weight / math.fsum(weights) for weight in weights]
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-300)


@given(ROUNDS, st.floats(-1e6, 1e6))
def test_softmax_does_not_see_a_constant(rounds, constant):
    values, offsets = flat(rounds)
    assert ragged.softmax(values + constant, offsets) == pytest.approx(ragged.softmax(values, offsets), abs=1e-7)


def test_softmax_of_extreme_values():
    values = np.array([8e307, -8e307, -8e307, -8e307, 0.0])
    assert ragged.softmax(values, np.array([0, 2, 4, 5])).tolist() == [1.0, 0.0, 0.5, 0.5, 1.0]


@pytest.mark.parametrize("function", [ragged.argmax, ragged.softmax])
def test_no_rounds(function):
    assert function(np.zeros(0), np.zeros(1, dtype=np.int64)).tolist() == []


@given(st.lists(st.integers(1, 400), max_size=60), st.integers(1, 3_000))
def test_blocks_cover_every_round_once(sizes, n_features):
    offsets = np.cumsum([0, *sizes])
    blocks = list(ragged.blocks(offsets, n_features))
    assert [t for start, stop in blocks for t in range(start, stop)] == list(range(len(sizes)))
    limit = max(1, ragged.BLOCK_VALUES // n_features)
    for start, stop in blocks:
        rows = offsets[stop] - offsets[start]
        assert rows <= limit or stop == start + 1
        assert stop == len(sizes) or offsets[stop + 1] - offsets[start] > limit, "a block could hold one round more"
