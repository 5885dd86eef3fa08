"""Random logs, as plain lists first: the model that the arrays are checked against."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from onlooker.logs.layouts import Layout
from onlooker.logs.log import BanditLog

VALUES = st.floats(-1e6, 1e6, allow_nan=False, width=32)
IDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=5)
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), min_size=1, max_size=5)


@dataclass
class Plain:
    """A log as lists: `rounds[t][k]` is the feature row of arm `k` in round `t`."""

    rounds: list[list[list[float]]]
    chosen: list[int]
    dtype: type = np.float64

    @property
    def n_features(self):
        return len(self.rounds[0][0])

    def log(self, **names) -> BanditLog:
        rows = np.array([row for arms in self.rounds for row in arms], dtype=self.dtype)
        offsets = np.cumsum([0, *map(len, self.rounds)])
        return BanditLog(rows, offsets, self.chosen, **names)

    def long(self, names):
        """Columns of the long table."""
        pairs = [(t, k) for t, arms in enumerate(self.rounds) for k in range(len(arms))]
        columns = {
            "round": [t for t, _ in pairs],
            "arm": [f"{t}/{k}" for t, k in pairs],
            "chosen": [int(self.chosen[t] == k) for t, k in pairs],
        }
        for j, name in enumerate(names):
            columns[name] = [self.rounds[t][k][j] for t, k in pairs]
        return columns


@st.composite
def plains(draw, max_rounds=8, dtypes=(np.float32, np.float64)) -> Plain:
    n_features = draw(st.integers(1, 4))
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=max_rounds))
    # One draw for all values: a list of lists of floats would be far slower to make and to shrink.
    rows = draw(hnp.arrays(np.float64, (sum(sizes), n_features), elements=VALUES)).tolist()
    ends = np.cumsum(sizes).tolist()
    rounds = [rows[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    chosen = [draw(st.integers(0, size - 1)) for size in sizes]
    return Plain(rounds, chosen, draw(st.sampled_from(dtypes)))


def assert_same(log: BanditLog, plain: Plain) -> None:
    """The log holds exactly what the lists hold."""
    assert log.n_rounds == len(log) == len(plain.rounds)
    assert log.chosen.tolist() == plain.chosen
    assert [log.arms(t).tolist() for t in range(log.n_rounds)] == plain.rounds


def assert_equal_logs(a: BanditLog, b: BanditLog) -> None:
    """Two logs agree in every part, types included."""
    assert a.features.dtype == b.features.dtype
    assert type(a.features) is type(b.features)
    assert np.array_equal(
        *(log.features.toarray() if isinstance(log.features, Layout) else log.features for log in (a, b))
    )
    assert np.array_equal(a.offsets, b.offsets)
    assert np.array_equal(a.chosen, b.chosen)
    assert a.feature_names == b.feature_names
    for mine, other in ((a.round_ids, b.round_ids), (a.arm_ids, b.arm_ids)):
        assert (mine is None) == (other is None)
        assert mine is None or mine.tolist() == other.tolist()
