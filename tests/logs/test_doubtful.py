"""Numbers that are ids or probabilities are no features, unless somebody says so."""

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest

from onlooker.base.errors import ColumnsLeftOutWarning, InputError
from onlooker.formats import read_log, scan_log
from onlooker.logs.log import BanditLog

N, K = 60, 4


def table(**columns):
    rng = np.random.default_rng(1)
    chosen = np.zeros((N, K), dtype=int)
    chosen[np.arange(N), rng.integers(K, size=N)] = 1
    return pa.table(
        {"round": np.repeat(np.arange(N), K), "chosen": chosen.ravel(), "x": rng.normal(size=N * K), **columns}
    )


RNG = np.random.default_rng(2)
SHARES = RNG.dirichlet(np.ones(K), size=N)
PER_ROUND = np.repeat(RNG.integers(1000, 9999, size=N), K)

LEFT_OUT = {
    "user_id": (PER_ROUND, "an id"),
    "sessionId": (PER_ROUND, "an id"),
    "visitor": (PER_ROUND, "an id"),
    "item_id": (RNG.integers(50, size=N * K), "an id"),
    "request_uuid": (np.arange(N * K) + 7, "an id"),
    "zzz": (np.repeat(RNG.permutation(N) * 3, K), "an id"),
    "timestamp": (1_700_000_000 + np.arange(N * K), "a time"),
    "created_at": (1.7e9 + np.arange(N * K) / 7, "a time"),
    "p_show": (SHARES.ravel(), "a probability"),
    "display_prob": (SHARES.ravel(), "a probability"),
    "logged_propensity": (np.repeat(SHARES[:, 0], K), "a probability"),
    "w": (SHARES.ravel(), "a probability"),
    "rounded": (np.round(SHARES.ravel(), 3), "a probability"),
    "logProb": (np.log(SHARES.ravel()), "a probability"),
}

KEPT = {
    "price": RNG.normal(size=N * K),
    "paid": RNG.integers(9, size=N * K),
    "max_bid": RNG.integers(99, size=N * K),
    "age": np.repeat(RNG.integers(18, 60, size=N), K),
    "pages": RNG.integers(400, size=N * K),
    "p_value_of_bid": RNG.normal(size=N * K),
    "one_hot": np.tile([1, 0, 0, 0], N),
    "probability_of_rain": RNG.normal(size=N * K),
    "valid": RNG.integers(2, size=N * K),
    "user_age": np.repeat(RNG.integers(18, 60, size=N), K),
    "is_id": RNG.integers(2, size=N * K),
    "counter": np.arange(N * K),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_left_out_with_a_note(tmp_path, name):
    values, what = LEFT_OUT[name]
    log = table(**{name: values})
    note = rf"not taken for features: '{name}' \({what}\); to keep one, name all features with `features`"
    with pytest.warns(ColumnsLeftOutWarning, match=note):
        assert BanditLog.from_frame(log).feature_names == ("x",)
    pc.write_csv(log, tmp_path / "log.csv")
    for read in (read_log, scan_log):
        with pytest.warns(ColumnsLeftOutWarning, match=note):
            assert read(tmp_path / "log.csv").feature_names == ("x",)
    assert BanditLog.from_frame(log, features=["x", name]).feature_names == ("x", name)
    if what == "an id":
        assert len(BanditLog.from_frame(log, categories=[name]).feature_names) > 2


@pytest.mark.parametrize("name", KEPT)
def test_features_are_kept(name):
    assert BanditLog.from_frame(table(**{name: KEPT[name]})).feature_names == ("x", name)


def test_a_table_of_nothing_else_is_refused():
    only = table(user_id=PER_ROUND).drop_columns(["x"])
    with pytest.raises(InputError, match=r"no feature besides 'round', 'chosen' \(left out: 'user_id'\)"):
        BanditLog.from_frame(only)


def test_a_shared_column_that_is_multiplied_is_no_feature_itself():
    log = BanditLog.from_frame(table(age=KEPT["age"]), cross=[("age", "x")])
    assert log.feature_names == ("x", "age:x")
