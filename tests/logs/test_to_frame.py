import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array

from onlooker.base.errors import InputError
from onlooker.logs.log import BanditLog
from strategies import assert_equal_logs


def example(dtype=np.float64, **kept):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(7, 3)).astype(dtype)
    rows[:, 1:] = np.array([[1, 0], [0, 1], [0, 0], [1, 0], [0, 0], [0, 1], [0, 0]])
    given = {
        "feature_names": ["price", "colour=red", "colour=blue"],
        "categories": {"colour": ("green", "red", "blue")},
        "round_ids": np.array(["b", "a", "c"], dtype=object),
        "arm_ids": np.array([4, 2, 9, 4, 4, 2, 7]),
        "times": np.array(["2024-01-01", "2024-01-02", "2024-01-02"], dtype="datetime64[us]"),
    }
    return BanditLog(rows, [0, 2, 5, 7], [1, 2, 0], **(given | kept))


@pytest.mark.parametrize(
    "log",
    [
        example(),
        example(np.float32),
        example(times=None),
        example(arm_ids=None, times=np.array([1, 2, 2])),
        example(categories=None),
        example(feature_names=["user_id", "p", "reward"], categories=None),
    ],
)
def test_a_table_makes_the_same_log(log):
    again = BanditLog.from_frame(log.to_frame())
    assert_equal_logs(again, log)
    assert again.features.dtype == log.features.dtype
    assert (again.times is None) == (log.times is None)
    assert log.times is None or np.array_equal(again.times, log.times)


def test_without_metadata_options_say_the_same():
    log = example(categories={"colour": ("green", "red", "blue")})
    other = pl.from_pandas(log.to_frame())
    assert_equal_logs(BanditLog.from_frame(other, arm="arm", order_by="time", like=log), log)


def test_columns_are_plain():
    table = example().to_frame()
    assert list(table.columns) == ["round", "chosen", "arm", "time", "price", "colour"]
    assert table["colour"].tolist()[:3] == ["red", "blue", "green"]
    assert table["chosen"].tolist() == [0, 1, 0, 0, 1, 1, 0]


def test_an_added_column_is_a_feature():
    table = example(categories=None).to_frame()
    log = BanditLog.from_frame(table.assign(speed=np.arange(7.0) ** 2))
    assert log.feature_names[-1] == "speed"
    assert log.arm_ids is not None


def test_levels_that_are_no_levels_stay_numbers():
    log = example()
    rows = log.dense.copy()
    rows[0, 1] = 0.5
    mixed = log.with_features(rows, log.feature_names, log.categories)
    again = BanditLog.from_frame(mixed.to_frame())
    assert np.array_equal(again.dense, rows)


def test_sparse_rows_are_written_out_if_they_fit():
    rows = csr_array(([1.0, 1.0, 2.0], [0, 4, 4], [0, 1, 2, 3]), shape=(3, 5))
    log = BanditLog.from_sparse(rows, [0, 2, 3], [1, 0])
    assert np.array_equal(BanditLog.from_frame(log.to_frame()).dense, rows.toarray())
    wide = csr_array(([1.0], [0], np.repeat([0, 1], [1, 200_000])), shape=(200_000, 2**18))
    with pytest.raises(InputError, match=r"memory|GB"):
        BanditLog.from_sparse(wide, np.arange(0, 200_001, 2), np.zeros(100_000, dtype=int)).to_frame()


def test_contexts_are_written_out():
    log = BanditLog.from_contexts(np.array([[1.0, 2.0], [3.0, 4.0]]), ["a", "b"])
    again = BanditLog.from_frame(log.to_frame())
    assert np.array_equal(again.dense, log.dense)
    assert again.feature_names == log.weight_names


def test_slates_keep_their_positions():
    table = pa.table({"round": [1, 1, 1, 2, 2, 2], "position": [2, None, 1, 1, 2, None], "x": np.arange(6.0) ** 2})
    log = BanditLog.from_frame(table, slate="position")
    assert log.to_frame()["position"].tolist() == [1, 1, 1, 2, 2, 1, 1, 1, 2, 2]
    assert_equal_logs(BanditLog.from_frame(log.to_frame()), log)


def test_a_feature_called_like_a_key_is_refused():
    log = BanditLog(np.eye(2), [0, 2], [0], feature_names=["round", "x"])
    with pytest.raises(InputError, match="cannot hold a feature called 'round'"):
        log.to_frame()
