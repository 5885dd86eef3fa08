"""Scanning gives the same rounds as reading, however the files are cut."""

import gzip
import json
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from onlooker.base.errors import InputError, UnseenCategoryWarning
from onlooker.formats import read_log, scan_log, write_log, write_parts
from onlooker.formats.long_jsonl import write_parts as write_jsonl
from onlooker.logs.log import BanditLog
from strategies import assert_equal_logs


def random_log(seed, rounds=60, **parts):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 9, rounds)
    offsets = np.cumsum([0, *sizes])
    ids = np.arange(rounds) + 2**53
    names = {"feature_names": ["a", "b"], "round_ids": ids, "arm_ids": np.arange(offsets[-1])} | parts
    return BanditLog(rng.normal(size=(offsets[-1], 2)), offsets, rng.integers(0, sizes), **names)


def write(log, path, long):
    if long:
        write_parts([log], path, long=True)
    else:
        write_log(log, path)


KINDS = [("log.csv", True), ("log.csv.gz", True), ("log.jsonl", True), ("log.parquet", True), ("log.parquet", False)]
each_kind = pytest.mark.parametrize(("name", "long"), KINDS)


@each_kind
@pytest.mark.parametrize("batch_rows", [1, 7, 50, 10_000])
def test_the_same_rounds_as_reading(tmp_path, name, long, batch_rows):
    log = random_log(0)
    write(log, tmp_path / name, long)
    scan = scan_log(tmp_path / name, batch_rows=batch_rows)
    assert (scan.feature_names, scan.n_features) == (("a", "b"), 2)
    parts = list(scan)
    assert_equal_logs(BanditLog.concat(parts), read_log(tmp_path / name))
    assert_equal_logs(BanditLog.concat(parts), log)
    assert_equal_logs(scan.read(), log)
    # CSV and JSON come in blocks of bytes: small files are one block.
    if name == "log.parquet" and batch_rows < 100:
        assert len(parts) > 2
        assert max(len(part.features) for part in parts) <= 2 * batch_rows + 16


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("seed", range(5))
def test_rounds_that_straddle_files_and_batches(tmp_path, suffix, seed):
    log = random_log(seed)
    rng = np.random.default_rng(seed)
    write_parts([log], tmp_path / "whole.parquet", long=True)
    table = pq.read_table(tmp_path / "whole.parquet")
    cuts = [0, *sorted(rng.integers(0, len(table), 4).tolist()), len(table)]
    for number, (start, stop) in enumerate(pairwise(cuts)):
        piece = table.slice(start, stop - start)
        if not len(piece):
            continue
        path = tmp_path / f"part{number}.{suffix}"
        if suffix == "csv":
            pa.csv.write_csv(piece, path)
        elif suffix == "parquet":
            pq.write_table(piece, path, row_group_size=3)
        else:
            path.write_text("".join(_line(row) for row in piece.to_pylist()))
    scan = scan_log(tmp_path / f"part*.{suffix}", batch_rows=int(rng.integers(1, 40)))
    assert_equal_logs(scan.read(), log)
    assert_equal_logs(scan.read(), log)


def _line(row):
    return json.dumps(row) + "\n"


def test_blocks_of_text_are_put_together(tmp_path):
    log = random_log(3, rounds=30_000)
    for name in ("log.csv", "log.jsonl"):
        write_log(log, tmp_path / name)
        assert (tmp_path / name).stat().st_size > 5 << 20
        parts = list(scan_log(tmp_path / name, batch_rows=1000))
        assert len(parts) > 1
        assert_equal_logs(BanditLog.concat(parts), log)


def test_a_round_larger_than_the_batch(tmp_path):
    log = BanditLog(np.arange(5000.0)[:, None], [0, 10, 4990, 5000], [3, 4000, 1], feature_names=["x"])
    write_parts([log], tmp_path / "log.parquet", long=True)
    parts = list(scan_log(tmp_path / "log.parquet", batch_rows=16))
    assert [len(part.features) for part in parts] == [10, 4980, 10]


def test_ids_that_turn_into_text_late(tmp_path):
    rows = "".join(f"{t},1,{t}.5\n" for t in range(300_000))
    (tmp_path / "log.csv").write_text("round,chosen,x\n" + rows + "last,1,2\n")
    ids = scan_log(tmp_path / "log.csv").read().round_ids
    assert ids[:2].tolist() == ["0", "1"]
    assert ids[-1] == "last"


def test_levels_are_those_of_all_files(tmp_path):
    (tmp_path / "a.csv").write_text("round,chosen,c,x\n1,1,red,1\n1,0,blue,2\n")
    (tmp_path / "b.csv").write_text("round,chosen,c,x\n2,1,green,1\n2,0,blue,2\n")
    scan = scan_log(tmp_path / "*.csv")
    assert scan.categories == {"c": ("blue", "green", "red")}
    assert scan.read().features[:, :2].tolist() == [[0, 1], [0, 0], [1, 0], [0, 0]]
    first = read_log(tmp_path / "a.csv")
    with pytest.warns(UnseenCategoryWarning, match="'green' in 1 row"):
        assert scan_log(tmp_path / "*.csv", like=first).read().feature_names == first.feature_names


def test_unseen_levels_are_told_once_for_all_parts(tmp_path):
    levels = "ab" * 50 + "z" * 7
    rows = "".join(f"{t},1,{level},{t}\n" for t, level in enumerate(levels))
    (tmp_path / "log.csv").write_text("round,chosen,c,x\n" + rows)
    like = BanditLog(np.zeros((1, 2)), [0, 1], [0], feature_names=["c=b", "x"], categories={"c": ["a", "b"]})
    with pytest.warns(UnseenCategoryWarning) as told:
        assert scan_log(tmp_path / "log.csv", like=like, batch_rows=10).read().n_rounds == 107
    assert ["'z' in 7 rows" in str(warning.message) for warning in told] == [True]


def test_lists_of_files_keep_their_order(tmp_path):
    for name, t in (("b", 1), ("a", 2)):
        (tmp_path / f"{name}.csv").write_text(f"round,chosen,x\n{t},1,1\n{t},0,2\n")
    assert scan_log([tmp_path / "b.csv", tmp_path / "a.csv"]).read().round_ids.tolist() == [1, 2]
    assert scan_log(tmp_path / "*.csv").read().round_ids.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("round,chosen,y\n2,1,1\n", "has other features"),
        ("round,chosen,x\n1,1,1\n", "round 1 has 2 picks"),
        ("round,chosen,x\n2,1,1\n1,1,2\n3,1,1\n", r"b.csv: column 'round', row 2 .* goes back to round 1"),
        ("round,chosen,x\n2,1,1\n3,0,2\n", r"b.csv: round 3 has no pick .* row 2 "),
    ],
)
def test_refuses(tmp_path, second, message):
    (tmp_path / "a.csv").write_text("round,chosen,x\n0,1,1\n1,1,1\n")
    (tmp_path / "b.csv").write_text(second)
    with pytest.raises(InputError, match=message):
        scan_log(tmp_path / "*.csv", batch_rows=2).read()


def test_paths_that_are_not_there(tmp_path):
    with pytest.raises(InputError, match="no file matches"):
        scan_log(tmp_path / "*.csv")
    with pytest.raises(InputError, match="there is no such file"):
        scan_log(tmp_path / "log.csv")
    with pytest.raises(InputError, match="there are no files"):
        scan_log([])
    with pytest.raises(InputError, match="batch_rows is 0"):
        scan_log(tmp_path / "log.csv", batch_rows=0)


@pytest.mark.parametrize("long", [True, False])
def test_times_must_not_fall(tmp_path, long):
    if long:
        table = pa.table({"round": [1, 2, 3], "chosen": [1, 1, 1], "x": [1.0, 2.0, 3.0], "t": [1, 2, 2]})
    else:
        table = pa.table({"arms": [[[1.0]], [[2.0]], [[3.0]]], "chosen": [0, 0, 0], "t": [1, 2, 2]})
    path = tmp_path / "log.parquet"
    for rows in (1, 100):
        pq.write_table(table, path)
        assert scan_log(path, batch_rows=rows, order_by="t").read().n_rounds == 3
        pq.write_table(table.set_column(table.schema.get_field_index("t"), "t", [[1, 3, 2]]), path)
        with pytest.raises(InputError, match=r"'t'.* 2.*a scan cannot sort"):
            scan_log(path, batch_rows=rows, order_by="t").read()


MEMORY = """
import resource, sys
from onlooker.formats import scan_log
scan = scan_log(sys.argv[1], batch_rows=20_000)
next(iter(scan))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for _ in range(2):
    rows = sum(len(log.features) for log in scan)
print(rows, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "long"), [kind for kind in KINDS if "gz" not in kind[0]])
def test_memory_is_bounded_by_the_batch(tmp_path, name, long):
    rng = np.random.default_rng(0)
    rows = 80_000
    log = BanditLog(
        rng.integers(0, 1000, (rows, 40)).astype(float), np.arange(0, rows + 1, 4), np.zeros(rows // 4, int)
    )
    write(log, tmp_path / name, long)
    command = [sys.executable, "-c", MEMORY, str(tmp_path / name)]
    read, grown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert int(read) == rows
    # The log itself would take 26 MB, and twice that on its way.
    assert float(grown) < 24


def test_compressed_files_are_streamed(tmp_path):
    log = random_log(5)
    write_jsonl([log], tmp_path / "plain.jsonl")
    (tmp_path / "log.ndjson.gz").write_bytes(gzip.compress((tmp_path / "plain.jsonl").read_bytes()))
    assert_equal_logs(scan_log(tmp_path / "log.ndjson.gz").read(), log)


def test_a_nested_file_without_rounds(tmp_path):
    arms = pa.array([], pa.list_(pa.list_(pa.float64())))
    pq.write_table(pa.table({"arms": arms, "chosen": pa.array([], pa.int64())}), tmp_path / "log.parquet")
    with pytest.raises(InputError, match=r"log\.parquet: holds no rounds"):
        scan_log(tmp_path / "log.parquet")
