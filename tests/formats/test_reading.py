import gzip
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from onlooker.base.errors import ColumnsLeftOutWarning, InputError
from onlooker.formats import read_log, read_logs, scan_log
from onlooker.formats import write_parts as write_long
from onlooker.logs.log import BanditLog
from strategies import assert_equal_logs

ROUNDS = [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]]]


def nested(path, arms, **columns):
    pq.write_table(pa.table({"arms": arms, "chosen": [1, 0]} | columns), path)
    return path


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.list_(pa.float64())),
        pa.large_list(pa.large_list(pa.float32())),
        pa.list_(pa.list_(pa.float32(), 2)),
        pa.list_(pa.list_(pa.float16(), 2)),
        pa.list_(pa.list_(pa.int8())),
        pa.list_(pa.list_(pa.uint64(), 2)),
    ],
    ids=str,
)
def test_nested_lists_of_any_kind(tmp_path, kind):
    whole = pa.types.is_integer(kind.value_type.value_type)
    rounds = [[[int(x) if whole else x for x in arm] for arm in arms] for arms in ROUNDS]
    log = read_log(nested(tmp_path / "log.parquet", pa.array(rounds, kind)))
    assert [log.arms(t).tolist() for t in range(2)] == ROUNDS
    assert log.chosen.tolist() == [1, 0]
    assert log.features.dtype == ("float32" if kind.value_type.value_type == pa.float32() else "float64")
    assert (log.feature_names, log.round_ids, log.arm_ids) == (None, None, None)


def test_nested_as_polars_writes_it(tmp_path):
    pl.DataFrame({"arms": ROUNDS, "chosen": [1, 0], "round": ["b", "a"]}).write_parquet(tmp_path / "log.parquet")
    log = read_log(tmp_path / "log.parquet")
    assert [log.arms(t).tolist() for t in range(2)] == ROUNDS
    assert log.round_ids.tolist() == ["b", "a"]


def test_nested_rounds_of_a_fixed_number_of_arms(tmp_path):
    arms = pa.array([[[1.0], [2.0]], [[3.0], [4.0]]], pa.list_(pa.list_(pa.float64(), 1), 2))
    assert read_log(nested(tmp_path / "log.parquet", arms)).features.tolist() == [[1], [2], [3], [4]]


def test_nested_columns_may_have_other_names(tmp_path):
    table = pa.table(
        {"offers": ROUNDS, "pick": [1, 0], "id": ["x", "y"], "names": [["a", "b"], ["c"]], "reward": [1, 0]}
    )
    pq.write_table(table, tmp_path / "log.parquet")
    log = read_log(tmp_path / "log.parquet", arms="offers", chosen="pick", round="id", arm="names")
    assert log.round_ids.tolist() == ["x", "y"]
    assert log.arm_ids.tolist() == ["a", "b", "c"]
    assert log.chosen.tolist() == [1, 0]


def test_nested_ids_that_are_dictionaries(tmp_path):
    ids = pa.array(["x", "y"]).dictionary_encode()
    assert read_log(nested(tmp_path / "log.parquet", ROUNDS, round=ids)).round_ids.tolist() == ["x", "y"]


def test_nested_names_come_from_the_metadata(tmp_path):
    metadata = {"onlooker": json.dumps({"format": 1, "feature_names": ["a", "b"]})}
    table = pa.table({"arms": ROUNDS, "chosen": [1, 0]}).replace_schema_metadata(metadata)
    pq.write_table(table, tmp_path / "log.parquet")
    assert read_log(tmp_path / "log.parquet").feature_names == ("a", "b")


LONG = {
    "round": [7, 7, 8, 8],
    "arm": ["01", "1", "01", "1"],
    "chosen": [0, 1, 1, 0],
    "price": [9.5, 7.25, 4.0, 5.0],
    "stops": [1, 0, 2, 2],
    "note": ["x", "x", "x", "x"],
    "reward": [0.0, 0.3, 0.1, 0.0],
    "propensity": [0.5, 0.5, 0.5, 0.5],
}


def long_file(folder, suffix, table):
    path = folder / f"log.{suffix}"
    pa.csv.write_csv(table, path) if suffix == "csv" else pq.write_table(table, path)
    return path


each_suffix = pytest.mark.parametrize("suffix", ["csv", "parquet"])


@each_suffix
def test_long_tables_with_defaults(tmp_path, suffix):
    with pytest.warns(ColumnsLeftOutWarning, match="not taken for features: 'note' .the same in every row."):
        log = read_log(long_file(tmp_path, suffix, pa.table(LONG)))
    assert log.feature_names == ("price", "stops")
    assert log.features.tolist() == [[9.5, 1], [7.25, 0], [4, 2], [5, 2]]
    assert log.chosen.tolist() == [1, 0]
    assert log.round_ids.tolist() == [7, 8]
    assert log.arm_ids.tolist() == ["01", "1", "01", "1"]


@each_suffix
def test_long_tables_with_options(tmp_path, suffix):
    names = ["trip", "way", "taken", "price", "stops", "note", "when", "propensity"]
    table = pa.table(LONG).rename_columns(names).set_column(6, "when", [[2.5, 2.5, 1, 1]])
    options = {
        "round": "trip",
        "chosen": "taken",
        "arm": "way",
        "features": ["stops", "propensity"],
        "order_by": "when",
    }
    log = read_log(long_file(tmp_path, suffix, table), **options)
    assert_equal_logs(log, BanditLog.from_frame(table, **options))
    assert log.round_ids.tolist() == [8, 7]
    assert log.feature_names == ("stops", "propensity")


@each_suffix
@pytest.mark.parametrize("chosen", [[False, True, True, False], [0, 1, 1, 0], [0.0, 1.0, 1.0, 0.0]])
def test_long_picks(tmp_path, suffix, chosen):
    path = long_file(tmp_path, suffix, pa.table(LONG | {"chosen": chosen}).drop_columns(["note"]))
    assert read_log(path).chosen.tolist() == [1, 0]


def test_long_parquet_keeps_float32(tmp_path):
    table = pa.table({"round": [1, 1], "chosen": [0, 1], "x": pa.array([1, 2], pa.float32())})
    assert read_log(long_file(tmp_path, "parquet", table)).features.dtype == np.float32


def test_truths_are_numbers_whether_named_or_not(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("round,chosen,promo,x\n1,0,True,1\n1,1,False,2.5\n")
    assert read_log(path).features.tolist() == [[1, 1], [0, 2.5]]
    assert read_log(path, features=["promo"]).features.tolist() == [[1], [0]]


def test_the_row_numbers_that_pandas_saves_are_no_feature(tmp_path):
    pd.DataFrame(LONG, index=[3, 1, 2, 0]).drop(columns="note").to_parquet(tmp_path / "log.parquet")
    assert read_log(tmp_path / "log.parquet").feature_names == ("price", "stops")


@pytest.mark.parametrize(
    "text",
    [
        "round,chosen,x\n1,0,2\n1,1,3\n",
        "round;chosen;x\n1;0;2\n1;1;3\n",
        "round\tchosen\tx\n1\t0\t2\n1\t1\t3\n",
        "\ufeffround,chosen,x\r\n1,0,2\r\n1,1,3\r\n",
        '"round","chosen","x"\n"1","0","2"\n1,1,3',
        "x,chosen,round\n2,false,1\n 3,true,1\n",
        "round,chosen,x\n1,0,2.0e0\n1,1,+3\n\n",
    ],
)
def test_kinds_of_csv(tmp_path, text):
    (tmp_path / "log.csv").write_text(text, encoding="utf-8", newline="")
    log = read_log(tmp_path / "log.csv")
    assert log.features.tolist() == [[2], [3]]
    assert log.chosen.tolist() == [1]
    assert log.round_ids.tolist() == [1]


def test_csv_numbers_that_begin_whole(tmp_path):
    n = 300_000
    values = ["1"] * (n - 1) + ["2.5"]
    rows = "".join(f"{t},1,{value}\n" for t, value in enumerate(values))
    (tmp_path / "log.csv").write_text("round,chosen,x\n" + rows)
    assert (tmp_path / "log.csv").stat().st_size > 1 << 21
    assert read_log(tmp_path / "log.csv").features[-2:].tolist() == [[1], [2.5]]


def test_capital_suffixes(tmp_path):
    (tmp_path / "LOG.CSV").write_text("round,chosen,x\n1,1,2\n")
    assert read_log(str(tmp_path / "LOG.CSV")).n_rounds == 1


def test_real_choices(data_folder):
    options = {"round": "individual", "chosen": "choice", "arm": "mode", "features": ["gc", "ttme", "hinc"]}
    log = read_log(data_folder / "modechoice.csv", **options)
    table = pd.read_csv(data_folder / "modechoice.csv", sep=";")
    assert np.array_equal(log.features, table[["gc", "ttme", "hinc"]].to_numpy())
    assert np.array_equal(log.round_ids, np.arange(1, 211))
    assert np.array_equal(log.arm_ids[log.chosen_rows], table["mode"][table["choice"] == 1])


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_numbers_as_categories_are_the_same_in_every_format(tmp_path, suffix):
    table = pa.table({"round": [1, 1, 1], "chosen": [0, 1, 0], "size": [10, 9, 2**53 + 1], "x": [1.5, 2.5, 3.5]})
    path = tmp_path / f"log.{suffix}"
    if suffix == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        long_file(tmp_path, suffix, table)
    log = read_log(path, categories=["size"])
    assert log.categories == {"size": ("9", "10", "9007199254740993")}
    assert log.features.tolist() == [[1, 0, 1.5], [0, 0, 2.5], [0, 1, 3.5]]
    assert_equal_logs(read_log(path, like=log), log)


def test_jsonl_keeps_dates_as_text_and_ids_as_they_are(tmp_path):
    rows = [
        {"round": "2024-01-02", "arm": 2**63 + 5, "chosen": True, "day": "2024-05-01", "x": 1},
        {"round": "2024-01-02", "arm": 1, "chosen": False, "day": "2024-05-02", "x": 2.5},
    ]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    log = read_log(tmp_path / "log.jsonl")
    assert log.round_ids.tolist() == ["2024-01-02"]
    assert log.arm_ids.tolist() == [2**63 + 5, 1]
    assert log.categories == {"day": ("2024-05-01", "2024-05-02")}


@pytest.mark.parametrize("name", ["log.tsv", "log.tsv.gz", "log.csv.gz"])
def test_tabs_and_compressed_tables(tmp_path, name):
    text = b"round\tchosen\tx\n1\t0\t2\n1\t1\t3\n"
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert read_log(tmp_path / name).features.tolist() == [[2], [3]]


@pytest.mark.parametrize("read", [read_log, lambda path, **options: scan_log(path, **options).read()])
def test_csv_leading_zeros_make_an_id_not_a_number(tmp_path, read):
    path = tmp_path / "log.csv"
    rows = [f"{t // 2},{t % 2},{t},{t:03d}" for t in range(100)]
    path.write_text("\n".join(["round,chosen,price,shop", *rows, ""]))
    with pytest.warns(ColumnsLeftOutWarning, match=r"'shop' \(text of 100 levels\)"):
        assert read(path).feature_names == ("price",)
    path.write_text("\n".join(["round,chosen,price,shop", *(row[:-1] for row in rows), ""]))
    assert read(path).categories == {"shop": tuple(f"{k:02d}" for k in range(10))}
    path.write_text("\n".join(["round,chosen,price,shop", *rows[:2], "1,1,0,0", "1,0,-0.5,10", ""]).replace("00", "0"))
    assert read(path, features=["price"]).features.ravel().tolist() == [0, 1, 0, -0.5]


@pytest.mark.parametrize("read", [read_log, lambda path, **options: scan_log(path, **options).read()])
def test_csv_decimal_commas_are_refused_unless_they_are_asked_for(tmp_path, read):
    path = tmp_path / "log.csv"
    lines = ["round;chosen;price;size", "1;1;25,23;4", "1;0;-0,5;7", "2;1;3;1", "2;0;1e2;2"]
    path.write_text("\n".join([*lines[:-1], "2;0;100;2", ""]))
    (tmp_path / "log.tsv").write_text(path.read_text().replace(";", "\t"))
    for written in (path, tmp_path / "log.tsv"):
        for options in ({}, {"decimal": "."}, {"features": ["price", "size"]}):
            with pytest.raises(InputError, match=r"column 'price', row 1 .*is '25,23': pass decimal=',' if that is"):
                read(written, **options)
        log = read(written, decimal=",")
        assert log.feature_names == ("price", "size")
        assert log.features.tolist() == [[25.23, 4], [-0.5, 7], [3, 1], [100, 2]]
    path.write_text("\n".join(line.replace(",", ".") for line in lines))
    assert read(path).features[:, 0].tolist() == [25.23, -0.5, 3, 100]
    path.write_text('round,chosen,price,size\n1,1,"7",4\n1,0,"25,23",7\n')
    for options in ({}, {"features": ["price", "size"]}):
        with pytest.raises(InputError, match=r"column 'price', row 2 .*is '25,23': pass decimal=','"):
            read(path, **options)
        assert read(path, decimal=",", **options).features[:, 0].tolist() == [7, 25.23]
    path.write_text("round;chosen;price;tags\n1;1;2.5;3,4\n1;0;2.25;4,7\n")
    assert read(path, categories=["tags"]).features.tolist() == [[2.5, 0], [2.25, 1]]
    with pytest.raises(InputError, match=r"option 'decimal' is ';': pass '\.' or ','"):
        read(path, decimal=";")


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_the_decimal_mark_is_an_option_of_csv_alone(tmp_path, suffix):
    path = tmp_path / f"log{suffix}"
    write_long([BanditLog(np.eye(2), [0, 2], [1], arm_ids=["a", "b"])], path, long=True)
    for read in (read_log, scan_log, lambda path, **options: read_logs(path, by="arm", **options)):
        with pytest.raises(InputError, match="has one way to write numbers: leave `decimal` out"):
            read(path, decimal=",")


@pytest.mark.parametrize("gap", ["", "NA", "null"])
def test_gaps_do_not_hide_decimal_commas(tmp_path, gap):
    path = tmp_path / "log.csv"
    path.write_text(f"round;chosen;price\n1;1;25,5\n1;0;{gap}\n2;1;7,25\n2;0;3\n")
    for read in (read_log, lambda path: scan_log(path).read()):
        with pytest.raises(InputError, match=r"column 'price', row 1 .* is '25,5': pass decimal=','"):
            read(path)


def test_a_reward_with_decimal_commas_is_ignored_like_any_other(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("round;chosen;price;reward\n1;1;25;0,5\n1;0;30;1,5\n")
    for log in (read_log(path), scan_log(path).read()):
        assert log.feature_names == ("price",)


def test_keys_of_candidates_that_are_not_utf8(tmp_path):
    (tmp_path / "log.jsonl").write_bytes(b'{"candidates":[{"x":1,"\xffy":2}],"chosen":0}\n')
    for read in (read_log, scan_log):
        with pytest.raises(InputError, match=r"row 1 .* is not JSON"):
            read(tmp_path / "log.jsonl")
