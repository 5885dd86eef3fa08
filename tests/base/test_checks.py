"""Plain numbers from users: accepted, or refused by name."""

import math

import numpy as np
import pytest

from onlooker.base.checks import as_number, as_whole
from onlooker.base.errors import InputError


def test_numpy_scalars_become_plain_numbers():
    assert type(as_whole(np.int32(4), "n")) is int
    assert type(as_number(np.float32(0.5), "noise")) is float


@pytest.mark.parametrize("value", [1.0, "3", None, [2]])
def test_what_is_not_whole_is_refused_by_name(value):
    with pytest.raises(InputError, match=r"batch is .*whole number of at least 1"):
        as_whole(value, "batch", least=1)


def test_a_whole_number_below_the_least_is_refused():
    with pytest.raises(InputError, match="batch is 0: pass a whole number of at least 1"):
        as_whole(0, "batch", least=1)


@pytest.mark.parametrize("value", [0.0, -1.0, 1.5, math.nan, math.inf, "0.5", None])
def test_a_number_outside_its_bounds_is_refused(value):
    with pytest.raises(InputError, match=r"delta is .*: pass a finite number above 0 and at most 1$"):
        as_number(value, "delta", above=0.0, most=1.0)


def test_bounds_that_may_be_reached():
    assert as_number(0, "epsilon", least=0.0, most=1.0) == 0.0
    assert as_number(1, "epsilon", least=0.0, most=1.0) == 1.0
