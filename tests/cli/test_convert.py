"""`onlooker convert`."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlooker import BanditLog, LinearPolicy, read_log, write_log
from strategies import assert_equal_logs


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 6, 40)
    offsets = np.cumsum([0, *sizes])
    return BanditLog(
        rng.normal(size=(offsets[-1], 3)),
        offsets,
        rng.integers(0, sizes),
        feature_names=["a", "b", "ü"],
        round_ids=[f"{t:03d}" for t in range(40)],
        arm_ids=np.arange(offsets[-1]),
    )


FORMATS = ["parquet", "csv", "csv.gz", "jsonl", "jsonl.gz"]


@pytest.mark.parametrize("first", FORMATS)
@pytest.mark.parametrize("second", FORMATS)
def test_from_every_format_to_every_format(run, tmp_path, log, first, second):
    write_log(log, tmp_path / f"in.{first}")
    ran = run("convert", tmp_path / f"in.{first}", tmp_path / f"out.{second}")
    assert ran.code == 0, ran.err
    head, *assumed = ran.out.splitlines()
    assert head.startswith(f"{tmp_path / f'in.{first}'} -> {tmp_path / f'out.{second}'}: 40 rounds, ")
    assert assumed
    assert all(line.startswith("  ") for line in assumed)
    assert_equal_logs(read_log(tmp_path / f"out.{second}"), log)


def test_long_parquet(run, tmp_path, log):
    write_log(log, tmp_path / "in.csv")
    assert run("convert", tmp_path / "in.csv", tmp_path / "out.parquet", "--long").code == 0
    assert pq.read_schema(tmp_path / "out.parquet").names == ["round", "arm", "chosen", "a", "b", "ü"]
    assert_equal_logs(read_log(tmp_path / "out.parquet"), log)


def test_says_what_it_assumed(run, tmp_path):
    path = tmp_path / "trips.csv"
    path.write_text("trip,taken,price,colour,note\n1,1,9,red,x\n1,0,8,blue,x\n2,1,7,green,x\n2,0,5,red,x\n")
    ran = run("convert", path, tmp_path / "log.parquet", "--round", "trip", "--chosen", "taken")
    assert ran.err == ""
    for said in (
        "long CSV: rounds from 'trip', picks from 'taken'",
        "3 features: 'price', 'colour=green', 'colour=red'",
        "category 'colour': 3 levels, the reference 'blue'",
        "not taken for features: 'note' (the same in every row)",
        "2 rounds, 4 offered arms",
    ):
        assert said in ran.out
    document = json.loads(
        run("convert", path, tmp_path / "log.csv", "--round", "trip", "--chosen", "taken", "--json").out
    )
    assert (document["rounds"], document["arms"], document["features"]) == (2, 4, 3)
    assert len(document["assumed"]) == 4


def test_categories_and_like(run, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("round,chosen,size\n1,1,2\n1,0,10\n2,0,10\n2,1,2\n")
    assert run("convert", path, tmp_path / "log.parquet", "--category", "size").code == 0
    assert read_log(tmp_path / "log.parquet").categories == {"size": ("2", "10")}
    LinearPolicy([1.0, 2.0], ["size=3", "size=10"], {"size": ["2", "3", "10"]}).save(tmp_path / "policy.json")
    assert run("convert", path, tmp_path / "log.parquet", "--like", tmp_path / "policy.json").code == 0
    assert read_log(tmp_path / "log.parquet").features.tolist() == [[0, 0], [0, 1], [0, 1], [0, 0]]


def test_patterns_and_sorting(run, tmp_path):
    for day in (2, 1):
        (tmp_path / f"day{day}.csv").write_text(f"round,chosen,x\n{day},1,1\n{day},0,2\n")
    assert run("convert", tmp_path / "day*.csv", tmp_path / "log.parquet").code == 0
    assert read_log(tmp_path / "log.parquet").round_ids.tolist() == [1, 2]
    (tmp_path / "log.csv").write_text("round,chosen,x,t\n1,1,1,5\n2,1,2,4\n")
    assert run("convert", tmp_path / "log.csv", tmp_path / "log.parquet", "--order-by", "t").code == 0
    assert read_log(tmp_path / "log.parquet").round_ids.tolist() == [2, 1]


def test_other_names_of_nested_columns(run, tmp_path):
    table = pa.table({"offers": [[[1.0], [2.0]]], "pick": [1]})
    pq.write_table(table, tmp_path / "in.parquet")
    ran = run("convert", tmp_path / "in.parquet", tmp_path / "out.csv", "--arms", "offers", "--chosen", "pick")
    assert ran.code == 0, ran.err
    assert read_log(tmp_path / "out.csv").chosen.tolist() == [1]


def test_what_cannot_be_written_is_told_of_the_target(refused, tmp_path, log, monkeypatch):
    bad = BanditLog(np.eye(2), [0, 2], [0], feature_names=["a", "reward"])
    write_log(bad, tmp_path / "in.parquet")
    said = refused("convert", tmp_path / "in.parquet", tmp_path / "out.csv")
    assert f"{tmp_path / 'out.csv'}: a long table cannot hold a feature called 'reward'" in said

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    write_log(log, tmp_path / "in.csv")
    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    said = refused("convert", tmp_path / "in.csv", tmp_path / "out.parquet")
    assert f"{tmp_path / 'out.parquet'}: " in said
    assert "No space left on device" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "in.parquet"]


def test_bad_input(refused, tmp_path, log):
    write_log(log, tmp_path / "in.parquet")
    assert "not written: write .csv" in refused("convert", tmp_path / "in.parquet", tmp_path / "out.xlsx")
    assert "not written" in refused("convert", tmp_path / "in.parquet", tmp_path / "out.tsv")
    assert "no such file" in refused("convert", tmp_path / "none.csv", tmp_path / "out.csv")
    assert "cannot be written" in refused("convert", tmp_path / "in.parquet", tmp_path / "none" / "out.csv")
    assert "no option --feature:" in refused("convert", tmp_path / "in.parquet", tmp_path / "o.csv", "--feature", "a")
    assert "policy.json" in refused("convert", tmp_path / "in.parquet", tmp_path / "o.csv", "--like", "policy.json")
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]
