"""The stride of a sample, counted ahead."""

import numpy as np
import pytest

from onlooker.clusters.ray_parts import stride_for
from onlooker.logs.log import BanditLog
from onlooker.logs.parts_summary import summarise_parts
from strategies import assert_equal_logs


class Halves:
    """A log in two parts."""

    def __init__(self, log):
        self.feature_names, self.n_features, self.categories = None, log.n_features, None
        self.cut = log.n_rounds // 2
        self.logs = {0: log[: self.cut], self.cut: log[self.cut :]}

    def run(self, task, start=0, stop=None):  # noqa: ARG002  only asked for all
        return (task(log, first) for first, log in self.logs.items())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("n_bytes", [1, 500, 4000, 9000, 10**6])
def test_the_sample_is_the_same(seed, n_bytes):
    rng = np.random.default_rng(seed)
    # Rounds with an even number may be far larger than the others.
    sizes = rng.integers(1, 9, 301) * np.where(np.arange(301) % 2, 1, rng.integers(1, 12))
    offsets = np.cumsum([0, *sizes])
    parts = Halves(BanditLog(rng.normal(size=(offsets[-1], 3)), offsets, [0] * 301))
    expected = summarise_parts(parts, n_bytes)
    stride = stride_for(parts, 301, n_bytes)
    found = summarise_parts(parts, n_bytes, stride)
    assert found.stride == expected.stride
    assert_equal_logs(found.sample, expected.sample)
    # A single round may be larger than the room, and is kept.
    assert stride == expected.stride or n_bytes < 4000
