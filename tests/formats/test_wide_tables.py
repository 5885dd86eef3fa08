"""Reading a table takes time in proportion to its columns and row groups."""

import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlooker import read_log, scan_log
from onlooker.formats import parquet_size as parquet_headers

WIDE = 5_000
"""Columns; in time that grows with their square, reading them once took more than a minute."""
SOON = 20.0
"""Seconds, on a machine that does much else."""


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    path = tmp_path_factory.mktemp("wide") / "wide.parquet"
    features = np.random.default_rng(0).normal(size=(WIDE, 8))
    columns = {"round": np.repeat(np.arange(4), 2), "chosen": np.tile([1, 0], 4)}
    pq.write_table(pa.table(columns | {f"x{j}": column for j, column in enumerate(features)}), path)
    return path


def test_thousands_of_columns_are_read_soon(wide):
    began = time.monotonic()
    log = read_log(wide)
    assert time.monotonic() - began < SOON
    assert log.n_features == WIDE
    scanned = scan_log(wide).read()
    np.testing.assert_array_equal(scanned.features, log.features)


def test_headers_are_read_by_hand_only_where_it_is_needed(wide, monkeypatch):
    monkeypatch.setattr(parquet_headers, "read_struct", lambda *_: pytest.fail("Thrift was read"))
    assert read_log(wide).n_rounds == 4
    with pytest.raises(pytest.fail.Exception, match="Thrift"):
        read_log(wide, memory_limit="16GB")


def test_a_column_within_a_column_of_a_similar_name_is_not_taken_for_it(tmp_path):
    path = tmp_path / "log.parquet"
    inner = pa.array([{"price": "x" * 10}] * 4)
    pq.write_table(
        pa.table({"round": [1, 1, 2, 2], "chosen": [1, 0, 0, 1], "a.price": [0.5, 1, 2, 3], "a": inner}), path
    )
    assert read_log(path, features=["a.price"]).features.ravel().tolist() == [0.5, 1, 2, 3]
