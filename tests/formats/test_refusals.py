import json
import os
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlooker.base.errors import InputError
from onlooker.formats import format as shared
from onlooker.formats import read_log, write_log
from onlooker.logs.log import BanditLog

ROUNDS = [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]]
LOG = BanditLog(np.eye(3), [0, 1, 3], [0, 1])


def refused(path, message, **columns):
    with pytest.raises(InputError, match=message) as caught:
        read_log(path, **columns)
    said = str(caught.value)
    assert said.startswith(f"{path}: ")
    assert "\n" not in said
    assert len(said) < 400


def test_paths(tmp_path):
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "empty.csv").touch()
    (tmp_path / "empty.parquet").touch()
    (tmp_path / "log.xlsx").write_text("x")
    refused(tmp_path / "none.parquet", "there is no such file")
    refused(tmp_path / "folder.parquet", "is an empty folder: there is no log in it")
    refused(tmp_path / "empty.csv", "is empty")
    refused(tmp_path / "empty.parquet", "is empty")
    refused(tmp_path / "log.xlsx", r"none of the known suffixes .*.csv, .*.parquet, .pq")
    refused(tmp_path / "log", "there is no such file")
    (tmp_path / "log").write_text("x")
    refused(tmp_path / "log", "none of the known suffixes")


@contextmanager
def ordinary_user():
    """The superuser may read everything, so step down for a moment."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def test_a_file_without_permission():
    # Not `tmp_path`: its folders are private, and an ordinary user would not even find the files.
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        for name in ("log.csv", "log.parquet"):
            path = Path(folder) / name
            path.write_text("x")
            path.chmod(0)
            with ordinary_user():
                refused(path, "Permission denied")


def test_options(tmp_path):
    write_log(LOG, tmp_path / "log.parquet")
    write_log(LOG, tmp_path / "log.csv")
    refused(tmp_path / "log.parquet", "nested Parquet has no option 'features': it takes arms, chosen", features=["t"])
    refused(tmp_path / "log.csv", "long CSV has no option 'arms': it takes round, chosen, arm, features", arms="t")
    refused(tmp_path / "log.csv", "option 'round' is 3: name a column", round=3)
    refused(tmp_path / "log.csv", "option 'features' is 'x0': pass a list of columns", features="x0")
    refused(tmp_path / "log.csv", "has no column 'trip': it has 'round', 'chosen', 'x0', 'x1', 'x2'", round="trip")
    refused(tmp_path / "log.parquet", "has no column 'pick': it has 'chosen', 'arms'", chosen="pick")


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"not Parquet at all",
        lambda _: b"PAR1",
        lambda _: b"PAR1PAR1",
        lambda whole: whole[:-1],
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[len(whole) // 2 :],
        lambda whole: whole[:-8] + b"\xff\xff\xff\x7fPAR1",
        lambda whole: whole[:4] + b"\0" * (len(whole) - 400) + whole[-396:],
    ],
)
def test_damaged_parquet(tmp_path, damage):
    path = tmp_path / "log.parquet"
    write_log(LOG, path)
    path.write_bytes(damage(path.read_bytes()))
    refused(path, "cannot be read as Parquet")


def test_parquet_with_flipped_bytes_is_read_or_refused(tmp_path):
    path = tmp_path / "log.parquet"
    write_log(LOG, path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        with suppress(InputError):
            assert read_log(path).n_rounds == LOG.n_rounds


FLOATS = pa.list_(pa.list_(pa.float64()))
FIXED = pa.list_(pa.list_(pa.float64(), 2))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"arms": pa.array([ROUNDS[0], None], FLOATS)}, "round 1 .counting from 0. has nothing in column 'arms'"),
        ({"arms": pa.array([ROUNDS[0], []], FLOATS)}, "round 1 .counting from 0. offers no arm"),
        ({"arms": pa.array([ROUNDS[0], [[1.0, 2.0], None]], FLOATS)}, "round 1 .counting from 0., arm 1 is missing"),
        ({"arms": pa.array([ROUNDS[0], [[1.0, 2.0], None]], FIXED)}, "round 1 .counting from 0., arm 1 is missing"),
        (
            {"arms": pa.array([[[1.0, 2.0], [3.0, None]], ROUNDS[1]], FLOATS)},
            "round 0 .counting from 0., arm 1, feature 1 is missing",
        ),
        (
            {"arms": pa.array([[[1.0, 2.0], [3.0, None]], ROUNDS[1]], FIXED)},
            "round 0 .counting from 0., arm 1, feature 1 is missing",
        ),
        (
            {"arms": [ROUNDS[0], [[5.0]]]},
            "round 1 .counting from 0., arm 0 has 1 features, but round 0 .*, arm 0 has 2",
        ),
        ({"arms": pa.array([[[], []], [[]]], FLOATS)}, "has no columns"),
        ({"arms": [ROUNDS[0], [[1.0, float("nan")]]]}, "round 1, arm 0, feature 1 is nan"),
        ({"arms": [[["a"]], [["b"]]]}, "column 'arms' holds lists of lists of string: features must be numbers"),
        ({"arms": [1.0, 2.0], "more": ROUNDS}, "column 'arms' holds double: it must hold lists"),
        ({"arms": [[1.0], [2.0]], "more": ROUNDS}, "column 'arms' holds list.*: it must hold lists"),
        ({"chosen": [0, 1]}, "round 1 picks position 1, but offers 1 arm "),
        ({"chosen": [-1, 0]}, "round 0 picks position -1"),
        ({"chosen": [2**62, 0]}, "round 0 picks position 4611686018427387904"),
        ({"chosen": [0, None]}, "round 1 .counting from 0. has nothing in column 'chosen'"),
        ({"chosen": [0.0, 0.0]}, "column 'chosen' holds double: it must hold the pick's position"),
        ({"chosen": [[0], [0]]}, "column 'chosen' holds list"),
        ({"round": ["a", None]}, "round 1 .counting from 0. has nothing in column 'round'"),
        ({"arm_ids": [["a"], ["b"]]}, "round 0 .counting from 0. has 1 ids in column 'arm_ids', but offers 2 arms"),
        ({"arm_ids": [["a", None], ["b"]]}, "round 0 .counting from 0., arm 1 has no id in column 'arm_ids'"),
        ({"arm_ids": [["a", "b"], None]}, "round 1 .counting from 0. has nothing in column 'arm_ids'"),
        ({"arm_ids": ["a", "b"]}, "column 'arm_ids' holds string: it must hold lists"),
    ],
)
def test_nested_parquet(tmp_path, columns, message):
    pq.write_table(pa.table({"arms": ROUNDS, "chosen": [1, 0]} | columns), tmp_path / "log.parquet")
    refused(tmp_path / "log.parquet", message)


@pytest.mark.parametrize("group", [1, 2])
def test_widths_that_change_are_refused_across_row_groups_too(tmp_path, group):
    table = pa.table({"arms": [[[1.0, 2.0]], [[1.0, 2.0]], [[5.0]], [[1.0, 2.0]]], "chosen": [0, 0, 0, 0]})
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=group)
    message = {
        1: "round 2 .counting from 0. has 1 features, but round 0 has 2",
        2: "round 3 .counting from 0., arm 0 has 2 features, but round 2 .*, arm 0 has 1",
    }
    refused(tmp_path / "log.parquet", message[group])


def test_rounds_are_counted_over_row_groups(tmp_path):
    table = pa.table({"arms": [*ROUNDS, *ROUNDS], "chosen": [0, 0, 0, None]})
    pq.write_table(table, tmp_path / "log.parquet", row_group_size=1)
    refused(tmp_path / "log.parquet", "round 3 .counting from 0. has nothing in column 'chosen'")


def test_nested_parquet_without_rounds(tmp_path):
    pq.write_table(
        pa.table({"arms": pa.array([], FIXED), "chosen": pa.array([], pa.int64())}), tmp_path / "log.parquet"
    )
    refused(tmp_path / "log.parquet", "holds no rounds")


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ("{", "damaged metadata"),
        ("[]", "damaged metadata"),
        ("{}", "damaged metadata"),
        ("[" * 100_000, "damaged metadata"),
        (json.dumps({"format": 1, "feature_names": "ab"}), "damaged metadata"),
        (json.dumps({"format": 2, "feature_names": None}), "has format '2', this onlooker reads 1: install a newer"),
        (json.dumps({"format": 1, "feature_names": ["a"]}), "feature_names has 1 names for 2 features"),
        (json.dumps({"format": 1, "feature_names": [1, 2]}), "feature_names must be a sequence of strings"),
    ],
)
def test_metadata_is_not_trusted(tmp_path, metadata, message):
    table = pa.table({"arms": ROUNDS, "chosen": [1, 0]}).replace_schema_metadata({"onlooker": metadata})
    pq.write_table(table, tmp_path / "log.parquet")
    refused(tmp_path / "log.parquet", message)


@pytest.mark.parametrize(
    "columns", [{"arms": ROUNDS, "chosen": [1, 0]}, {"round": [1, 1], "chosen": [1, 0], "x": [1, 2]}]
)
def test_a_log_larger_than_the_machine_is_not_begun(tmp_path, monkeypatch, columns):
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    assert read_log(tmp_path / "log.parquet").n_rounds
    monkeypatch.setattr(os, "sysconf", lambda _: 8)
    monkeypatch.setattr("onlooker.base.memory_limit.LITTLE", 0)
    refused(tmp_path / "log.parquet", r"would take 0.0 GB, but this machine has 0.0 GB")


def test_a_small_file_may_hold_a_large_log(tmp_path):
    n = 1 << 20
    arms = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(n)), 1)
    rounds = pa.ListArray.from_arrays(pa.array([0, n], pa.int32()), arms)
    pq.write_table(pa.table({"arms": rounds, "chosen": [0]}), tmp_path / "log.parquet")
    assert (tmp_path / "log.parquet").stat().st_size < 20_000
    assert read_log(tmp_path / "log.parquet").features.shape == (n, 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"\n\n", "has no columns 'round' and 'chosen'|cannot be read as CSV"),
        (b"round,chosen\n1,1\n", "has no feature besides 'round', 'chosen': name the features"),
        (b"round,chosen,x\n", "has no rows: nothing was offered"),
        (b"round,chosen,x,x\n1,1,2,3\n", "has the column 'x' twice"),
        (b"round,chosen,x\n1,1\n", "cannot be read as CSV .*Expected 3 columns, got 2"),
        (b"round,chosen,x\n1,1,2,3\n", "cannot be read as CSV .*Expected 3 columns, got 4"),
        (b"round,chosen,x\n1,1,2\n1,0,\n", "column 'x', row 2 .*is missing"),
        (b"round,chosen,x\n1,1,2\n1,0,nan\n", "column 'x', row 2 .*is missing"),
        (b"round,chosen,x\n1,1,inf\n", "column 'x', row 1 .*is inf"),
        (b"round,chosen,x,y\n1,1,2,1\n2,1,abc,1\n3,1,2,1\n", "column 'x', row 2 .*is 'abc', not a number"),
        (b"round,chosen,x\n1,1,2\n,1,3\n", "column 'round', row 2 .*is missing"),
        (b"round,chosen,x\n1,1,2\n2,,3\n", "column 'chosen', row 2 .*is missing"),
        (b"round,chosen,x\n1,yes,2\n", "column 'chosen', row 1 .*is 'yes': use 1 for the pick"),
        (b"round,chosen,x\n1,1,2\n1,1,3\n", "round 1 has 2 picks"),
        (b"round,chosen,x\n01,0,2\n", "round '01' has no pick"),
        (b"round,chosen,\xff\n1,1,2\n", "is not text in UTF-8"),
        (b"round,chosen,x\n\xff,1,2\n", "cannot be read as CSV .*UTF8|is not text in UTF-8"),
        (b"PAR1 is the beginning of a Parquet file", "has no columns 'round' and 'chosen'"),
        (b"round,chosen,x\n1,1,2\n\0\0\0", "cannot be read as CSV"),
        (b"a" * 200_000, "cannot be read as CSV .field larger than field limit"),
    ],
)
def test_long_csv(tmp_path, text, message):
    (tmp_path / "log.csv").write_bytes(text)
    refused(tmp_path / "log.csv", message)


def test_csv_feature_that_is_text(tmp_path):
    (tmp_path / "log.csv").write_text("round,chosen,x\n1,1,a\n")
    refused(tmp_path / "log.csv", "no feature besides 'round', 'chosen' .left out: 'x'.: name the", features=["x"])


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"round": [1], "chosen": [1]}, "has no feature besides 'round', 'chosen'"),
        ({"chosen": [1], "x": [1]}, "has no column 'round': it has 'chosen', 'x'"),
        ({"round": [1, 1], "chosen": [1, 0], "x": [1.0, None]}, "column 'x', row 2 .*is missing"),
        ({"round": [1, 1], "chosen": [0, 0], "x": [1.0, 2.0]}, "round 1 has no pick"),
    ],
)
def test_long_parquet(tmp_path, table, message):
    pq.write_table(pa.table(table), tmp_path / "log.parquet")
    refused(tmp_path / "log.parquet", message)


def test_long_parquet_with_doubled_columns(tmp_path):
    table = pa.table([[1], [1], [2.0], [3.0]], names=["round", "chosen", "x", "x"])
    pq.write_table(table, tmp_path / "log.parquet")
    refused(tmp_path / "log.parquet", "has the column 'x' twice")


def with_parts(**parts):
    return BanditLog(LOG.features, LOG.offsets, LOG.chosen, **parts)


@pytest.mark.parametrize(
    ("log", "name", "message"),
    [
        (LOG, "log.xlsx", "of a kind that is not written: write .csv, .csv.gz"),
        (LOG, "none/log.csv", "cannot be written"),
        (LOG[:0], "log.parquet", "the log has no rounds"),
        (LOG[:0], "log.csv", "the log has no rounds"),
        (with_parts(round_ids=["a", "a"]), "log.csv", "round id 'a' stands for 2 rounds"),
        (with_parts(feature_names=["a", "chosen", "b"]), "log.csv", "a feature called 'chosen': rename it"),
        (with_parts(feature_names=["a", "reward", "b"]), "log.csv", "a feature called 'reward': rename it"),
        (with_parts(feature_names=["a", "Cost", "b"]), "log.csv", "a feature called 'Cost': rename it"),
        (with_parts(round_ids=np.array(["a", None], dtype=object)), "log.parquet", "round_ids has a missing id"),
        (with_parts(round_ids=np.array(["a", 1], dtype=object)), "log.parquet", "round_ids cannot be written"),
        (with_parts(round_ids=np.array([2**70, 1], dtype=object)), "log.parquet", "round_ids cannot be written"),
        (with_parts(arm_ids=["a", "", "b"]), "log.csv", "arm_ids has an empty id"),
    ],
)
def test_writing(tmp_path, log, name, message):
    target = tmp_path / name
    with pytest.raises(InputError, match=message) as caught:
        write_log(log, target)
    assert str(caught.value).startswith(f"{target}: ")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_told_and_leaves_the_old_file(tmp_path, monkeypatch):
    write_log(LOG, tmp_path / "log.parquet")
    before = (tmp_path / "log.parquet").read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(InputError, match=r"cannot be written \(No space left on device\)"):
        write_log(LOG[:1], tmp_path / "log.parquet")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [before]


def test_running_out_of_memory_is_told():
    with pytest.raises(InputError, match="does not fit into memory"), shared.arrow_errors("CSV"):
        raise MemoryError


def test_importing_does_not_load_arrow():
    code = "import sys, onlooker.formats; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
