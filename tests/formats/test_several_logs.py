"""Several logs in one file, and rounds in order of time."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from onlooker.base.errors import InputError
from onlooker.formats import read_log, read_logs, write_log
from onlooker.logs.log import BanditLog
from strategies import assert_equal_logs


def make(path, table):
    if path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        table.to_pandas().to_json(path, orient="records", lines=True)
    return path


LONG = pa.table(
    {
        "shop": ["b", "b", "a", "a", "b", "b", "a", "a"],
        "round": [1, 1, 1, 1, 2, 2, 2, 2],
        "chosen": [1, 0, 0, 1, 0, 1, 1, 0],
        "price": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
        "colour": ["red", "blue", "blue", "blue", "red", "blue", "green", "blue"],
        "time": [4, 4, 3, 3, 2, 2, 1, 1],
    }
)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_long_tables_by_a_column(tmp_path, suffix):
    path = make(tmp_path / f"log.{suffix}", LONG)
    logs = read_logs(path, by="shop", features=["price", "colour"])
    assert list(logs) == ["b", "a"]
    assert logs["b"].features.tolist() == [[1, 0, 1], [2, 0, 0], [5, 0, 1], [6, 0, 0]]
    assert logs["a"].features.tolist() == [[3, 0, 0], [4, 0, 0], [7, 1, 0], [8, 0, 0]]
    assert logs["a"].chosen.tolist() == [1, 0]
    assert {log.feature_names for log in logs.values()} == {("price", "colour=green", "colour=red")}
    assert logs["a"].round_ids.tolist() == logs["b"].round_ids.tolist() == [1, 2]


def test_by_and_order_by_together(tmp_path):
    logs = read_logs(make(tmp_path / "log.parquet", LONG), by="shop", features=["price"], order_by="time")
    assert {shop: log.round_ids.tolist() for shop, log in logs.items()} == {"a": [2, 1], "b": [2, 1]}
    assert logs["b"].features.ravel().tolist() == [5, 6, 1, 2]


def test_numbers_tell_logs_apart_too(tmp_path):
    table = LONG.set_column(0, "shop", [[1, 1, 2, 2, 1, 1, 2, 2]])
    for suffix in ("csv", "parquet"):
        assert list(read_logs(make(tmp_path / f"log.{suffix}", table), by="shop", features=["price"])) == ["1", "2"]


NESTED = pa.table(
    {
        "arms": [[[1.0], [2.0]], [[3.0]], [[4.0], [5.0]], [[6.0]]],
        "chosen": [1, 0, 0, 0],
        "learner": ["x", "y", "x", "y"],
        "when": [3.0, 4.0, 1.0, 2.0],
    }
)


def test_nested_tables_by_a_column_and_in_time(tmp_path):
    path = make(tmp_path / "log.parquet", NESTED)
    logs = read_logs(path, by="learner")
    assert {name: log.features.ravel().tolist() for name, log in logs.items()} == {"x": [1, 2, 4, 5], "y": [3, 6]}
    log = read_log(path, order_by="when")
    assert log.features.ravel().tolist() == [4, 5, 6, 1, 2, 3]
    assert log.chosen.tolist() == [0, 0, 1, 0]
    logs = read_logs(path, by="learner", order_by="when")
    assert {name: log.features.ravel().tolist() for name, log in logs.items()} == {"x": [4, 5, 1, 2], "y": [6, 3]}


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_order_by_in_every_format(tmp_path, suffix):
    table = LONG.drop_columns(["shop"]).set_column(0, "round", [[1, 1, 2, 2, 3, 3, 4, 4]])
    path = make(tmp_path / f"log.{suffix}", table)
    log = read_log(path, order_by="time")
    assert log.round_ids.tolist() == [4, 3, 2, 1]
    assert_equal_logs(log, BanditLog.from_frame(table, order_by="time"))


def test_nested_tables_are_put_in_the_order_of_another_log(tmp_path):
    log = BanditLog(np.arange(6.0).reshape(3, 2), [0, 3], [1], feature_names=["a", "b"])
    write_log(log, tmp_path / "log.parquet")
    like = BanditLog(np.zeros((1, 2)), [0, 1], [0], feature_names=["b", "a"])
    assert read_log(tmp_path / "log.parquet", like=like).features.tolist() == [[1, 0], [3, 2], [5, 4]]
    with pytest.raises(InputError, match="has no feature 'z', which `like` has"):
        read_log(tmp_path / "log.parquet", like=BanditLog(np.zeros((1, 1)), [0, 1], [0], feature_names=["z"]))


def test_refuses(tmp_path):
    path = make(tmp_path / "log.csv", LONG)
    with pytest.raises(InputError, match="no column 'store'"):
        read_logs(path, by="store")
    with pytest.raises(InputError, match="option 'by' is 3: name a column"):
        read_logs(path, by=3)
    with pytest.raises(InputError, match="long CSV has no option 'arms'"):
        read_logs(path, by="shop", arms="x")
