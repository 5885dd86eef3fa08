"""The same log wherever it is: in one file or many, compressed, in a database, in a stream."""

import bz2
import gzip
import io
import os
import sqlite3
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.feather as pf
import pyarrow.parquet as pq
import pytest

from onlooker import BanditLog, InputError, SuffixImitation, read_log, read_logs, scan_log, write_log
from onlooker.formats.spool import Spool
from place_logs import log_table, parts, records
from strategies import assert_equal_logs

TABLE = log_table()
COLUMNS = {"features": ["price", "size", "colour"], "arm": "arm"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder, and another for copies."""
    (tmp_path / "here").mkdir()
    (tmp_path / "copies").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "copies"))
    yield tmp_path / "here"
    assert not [*(tmp_path / "copies").iterdir()]


def as_csv(table=TABLE):
    sink = io.BytesIO()
    pc.write_csv(table, sink)
    return sink.getvalue()


def zstd(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as file:
        file.write(content)
    return sink.getvalue().to_pybytes()


def in_file(name, content):
    Path(name).write_bytes(content)
    return name


def in_parts(pattern, write=pq.write_table, *, whole=False):
    names = [pattern.format(number) for number in (2, 9, 10)]
    for name, part in zip(names, parts(TABLE, whole=whole), strict=True):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        write(part, name)
    return names


def in_sqlite():
    with sqlite3.connect("log.db") as database:
        kinds = {"int64": "INTEGER", "double": "REAL"}
        columns = ", ".join(f"{one.name} {kinds.get(str(one.type), 'TEXT')}" for one in TABLE.schema)
        database.execute(f"CREATE TABLE log ({columns})")
        marks = ", ".join("?" * TABLE.num_columns)
        database.executemany(f"INSERT INTO log VALUES ({marks})", records(TABLE))  # noqa: S608  our own
    database.close()


def in_duckdb():
    import duckdb

    with duckdb.connect("log.duckdb") as database:
        database.register("given", TABLE)
        database.execute("CREATE TABLE log AS SELECT * FROM given")


def duckdb_relation():
    import duckdb

    database = duckdb.connect()
    database.register("table_here", TABLE)
    return duckdb.sql("SELECT * FROM table_here", connection=database)


def feather(name, compression):
    pf.write_feather(TABLE, name, compression=compression, chunksize=50)
    return name


def folder_of(write):
    in_parts("log/day{}.csv", write)
    Path("log/_SUCCESS").touch()
    Path("log/.day2.csv.crc").touch()
    return "log"


QUERY = {"sql": "SELECT * FROM log"}
PLACES = {
    "parquet": lambda: (pq.write_table(TABLE, "log.parquet"), "log.parquet")[1],
    "gz": lambda: in_file("log.csv.gz", gzip.compress(as_csv())),
    "bz2": lambda: in_file("log.csv.bz2", bz2.compress(as_csv())),
    "zst": lambda: in_file("log.csv.zst", zstd(as_csv())),
    "zst in pieces": lambda: in_file("log.csv.zst", zstd(as_csv()[:500]) + zstd(as_csv()[500:])),
    "feather": lambda: feather("log.feather", "uncompressed"),
    "feather, lz4": lambda: feather("log.arrow", "lz4"),
    "feather, zstd": lambda: feather("log.ipc", "zstd"),
    "folder": lambda: folder_of(pc.write_csv),
    "hive": lambda: (in_parts("log/year=2024/month={:02}/part-0.parquet"), "log")[1],
    "glob": lambda: (in_parts("day{}.parquet"), "day*.parquet")[1],
    "deep glob": lambda: (in_parts("log/shop={}/day.feather", pf.write_feather), "log/**/*.feather")[1],
    "list": lambda: in_parts("day{}.parquet"),
    "file address": lambda: in_file(Path("log.csv").absolute(), as_csv()).as_uri(),
    "sqlite": lambda: (in_sqlite(), ("sqlite:///log.db", QUERY))[1],
    "sqlite, a table": lambda: (in_sqlite(), ("sqlite:///log.db", {"sql": "log"}))[1],
    "sqlite, from the root": lambda: (in_sqlite(), (f"sqlite:///{Path('log.db').absolute()}", QUERY))[1],
    "duckdb": lambda: (in_duckdb(), ("duckdb:///log.duckdb", QUERY))[1],
    "arrow stream": lambda: TABLE.to_reader(max_chunksize=50),
    "duckdb relation": duckdb_relation,
    "pandas": TABLE.to_pandas,
    "polars": lambda: pl.from_arrow(TABLE),
    "polars, lazy": lambda: pl.from_arrow(TABLE).lazy(),
}


def given(kind):
    found = PLACES[kind]()
    return found if isinstance(found, tuple) else (found, {})


@pytest.fixture(scope="module")
def expected():
    return SuffixImitation(burn_in=0).fit(read_log(TABLE, **COLUMNS)).theta_


@pytest.mark.parametrize("kind", PLACES)
def test_the_same_log_gives_the_same_theta(expected, kind):
    source, options = given(kind)
    log = read_log(source, **options, **COLUMNS)
    assert_equal_logs(log, read_log(TABLE, **COLUMNS))
    assert np.array_equal(SuffixImitation(burn_in=0).fit(log).theta_, expected)


@pytest.mark.parametrize("kind", PLACES)
def test_the_same_scan_gives_the_same_theta(kind):
    pq.write_table(TABLE, "whole.parquet")
    whole = SuffixImitation(burn_in=0).fit(scan_log("whole.parquet", **COLUMNS)).theta_
    Path("whole.parquet").unlink()
    source, options = given(kind)
    scan = scan_log(source, **options, **COLUMNS)
    for _ in range(2):
        assert_equal_logs(scan.read(), read_log(TABLE, **COLUMNS))
    assert np.array_equal(SuffixImitation(burn_in=0).fit(scan).theta_, whole)


SNIFFED = {
    "csv": as_csv,
    "csv.zst": lambda: zstd(as_csv()),
    "tabs": lambda: as_csv().replace(b",", b"\t"),
    "jsonl": lambda: pl.from_arrow(TABLE).write_ndjson().encode(),
    "parquet": lambda: (pq.write_table(TABLE, "x.parquet"), Path("x.parquet").read_bytes())[1],
    "feather": lambda: (pf.write_feather(TABLE, "x.feather"), Path("x.feather").read_bytes())[1],
}


@pytest.mark.parametrize("kind", SNIFFED)
@pytest.mark.parametrize("opened", [read_log, scan_log])
def test_the_standard_input_is_known_by_its_content(monkeypatch, kind, opened):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(SNIFFED[kind]())))
    log = opened("-", **COLUMNS)
    found = log if opened is read_log else log.read()
    assert np.array_equal(found.dense, read_log(TABLE, **COLUMNS).dense)


@pytest.mark.parametrize("name", ["log.vw", "log.dsjson", "log.npz", "log.parquet"])
def test_other_formats_through_the_standard_input_and_in_a_folder(monkeypatch, name):
    log = BanditLog.from_dense(np.random.default_rng(0).normal(size=(9, 2, 3)), [0, 1, 0, 1, 1, 0, 0, 1, 1])
    write_log(log, name)
    whole = read_log(name)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(Path(name).read_bytes())))
    assert_equal_logs(read_log("-"), whole)
    Path("days").mkdir()
    for number, (start, stop) in {2: (0, 4), 10: (4, 9)}.items():
        write_log(log[start:stop], f"days/{number}{Path(name).suffix}")
    for found in (read_log("days"), scan_log("days").read()):
        assert np.array_equal(found.dense, whole.dense)
        assert np.array_equal(found.chosen, whole.chosen)


def test_features_that_a_later_file_names_first():
    first, second = "0:1:1 |x p:1\n|x p:2 q\n\n|x p:3\n0:1:1 |x p:4", "|x p:1\n0:1:1 |x p:2 new:3\n\n"
    Path("1.vw").write_text(first)
    Path("2.vw").write_text(second)
    Path("all.vw.gz").write_bytes(gzip.compress(f"{first}\n\n{second}".encode()))
    whole = read_log("all.vw.gz")
    assert whole.feature_names == ("x^p", "x^q", "x^new")
    for found in (read_log(["1.vw", "2.vw"]), scan_log(["1.vw", "2.vw"]).read()):
        assert found.feature_names == whole.feature_names
        assert np.array_equal(found.dense, whole.dense)


def test_a_line_is_counted_in_its_own_file():
    Path("1.vw").write_text("0:1:1 |x p:1\n|x p:2")
    Path("2.vw").write_text("0:1:1 |x p:1\n|x p:two2:3\n")
    with pytest.raises(InputError, match=r"^2\.vw: line 2 "):
        read_log(["1.vw", "2.vw"])


def test_times_sort_whole_reads_whatever_the_order_of_files():
    names = in_parts("day{}.parquet", whole=True)
    assert_equal_logs(read_log(names[::-1], order_by="step", **COLUMNS), read_log(TABLE, order_by="step", **COLUMNS))


def test_rows_of_partitions():
    table = TABLE.drop_columns(["step", "row"])
    for month, part in zip((9, 10), (table[:90], table[90:]), strict=True):
        Path(f"log/year=2024/month={month:02}").mkdir(parents=True)
        pc.write_csv(part, f"log/year=2024/month={month:02}/part-0.csv")
    assert read_log("log").feature_names == read_log(table).feature_names
    crossed = read_log("log", features=["price"], cross=[("size", "month")]).dense
    assert np.array_equal(crossed[:, 1], np.array(TABLE["size"]) * np.repeat([9, 10], [90, 270]))
    logs = read_logs("log", by="month", **COLUMNS)
    assert {month: log.n_rounds for month, log in logs.items()} == {"9": 30, "10": 90}
    for opened in (read_log, lambda *one, **more: scan_log(*one, **more).read()):
        log = opened("log", features=["price", "month"], order_by="year")
        assert log.feature_names == ("price", "month")
        assert {*log.dense[:90, 1]} == {9.0}
        assert {*log.dense[90:, 1]} == {10.0}
    like = read_log("log", features=["price", "month"])
    assert_equal_logs(read_log("log", like=like), like)


@pytest.mark.parametrize("kind", ["folder", "hive", "list", "sqlite", "duckdb", "arrow stream", "zst", "feather"])
@pytest.mark.parametrize("opened", [read_log, lambda *one, **more: scan_log(*one, **more).read()])
def test_tables_of_one_row_per_round(kind, opened):
    """The same rows, taken for rounds: what describes each, and the arm that was picked."""
    source, options = given(kind)
    columns = {"context": ["price", "size"], "arm": "colour", "round": "row"}
    expected, found = read_log(TABLE, **columns), opened(source, **options, **columns)
    assert found.feature_names == expected.feature_names
    assert np.array_equal(found.chosen, expected.chosen)
    assert np.array_equal(found.features.toarray(), expected.features.toarray())


@pytest.mark.parametrize(("suffix", "write"), [("csv", pc.write_csv), ("parquet", pq.write_table)])
def test_rounds_without_ids_in_several_files(suffix, write):
    columns = {"context": ["price", "size"], "arm": "colour"}
    rows = TABLE.select(["price", "size", "colour"])
    names = [f"day{number}.{suffix}" for number in (1, 2)]
    for name, part in zip(names, (rows.slice(0, 20), rows.slice(20)), strict=True):
        write(part, name)
    expected, found = read_log(rows, **columns), read_log(names, **columns)
    assert np.array_equal(found.chosen, expected.chosen)
    assert np.array_equal(found.features.toarray(), expected.features.toarray())


def test_a_column_of_the_file_comes_before_that_of_its_folder():
    Path("log/size=100").mkdir(parents=True)
    pq.write_table(TABLE, "log/size=100/part-0.parquet")
    assert_equal_logs(read_log("log", **COLUMNS), read_log(TABLE, **COLUMNS))


def test_ids_that_are_numbers_in_one_file_and_text_in_another():
    Path("1.csv").write_text("round,chosen,price\n1,1,2\n1,0,3\n")
    Path("2.csv").write_text("round,chosen,price\nb,0,2.5\nb,1,4\n")
    for found in (read_log(["1.csv", "2.csv"]), scan_log(["1.csv", "2.csv"]).read()):
        assert found.round_ids.tolist() == ["1", "b"]


@pytest.mark.parametrize("opened", [read_log, scan_log])
@pytest.mark.parametrize(
    ("other", "said"),
    [
        (TABLE.drop_columns("size"), r"2\.csv: .*'size'.* 1\.csv|2\.csv: has other features than 1\.csv"),
        (
            TABLE.append_column("more", TABLE["size"]),
            r"2\.csv: .*'more'.* 1\.csv|2\.csv: has other features than 1\.csv",
        ),
        (TABLE.set_column(3, "price", pa.array(["dear", "cheap"] * 180)), r"2\.csv: .* 1\.csv"),
    ],
)
def test_files_that_differ_are_both_named(opened, other, said):
    pc.write_csv(TABLE, "1.csv")
    pc.write_csv(other, "2.csv")
    with pytest.raises(InputError, match=said) as caught:
        opened(["1.csv", "2.csv"])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("chosen", (pa.int64(), pa.bool_())),
        ("colour", (pa.string(), pa.dictionary(pa.int32(), pa.string()))),
        ("step", (pa.timestamp("us"), pa.timestamp("us", "UTC"))),
        ("step", (pa.timestamp("us"), pa.date32())),
    ],
)
def test_kinds_that_cannot_be_joined_are_refused(name, kinds):
    at = TABLE.column_names.index(name)
    for number, kind in enumerate(kinds, 1):
        column = TABLE[name] if name != "step" else TABLE[name].cast(pa.int64()).cast(pa.timestamp("s"))
        column = column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind, safe=False)
        pq.write_table(TABLE.set_column(at, name, column), f"{number}.parquet")
    with pytest.raises(InputError, match=rf"^2\.parquet: column '{name}' holds .*1\.parquet: make them one kind$"):
        read_log(["1.parquet", "2.parquet"], order_by="step")


def test_a_partition_without_a_value_is_missing():
    for month, part in (("9", TABLE[:90]), ("__HIVE_DEFAULT_PARTITION__", TABLE[90:])):
        Path(f"log/month={month}").mkdir(parents=True)
        pq.write_table(part, f"log/month={month}/part-0.parquet")
    assert read_log("log", **COLUMNS).n_rounds == read_log(TABLE, **COLUMNS).n_rounds
    with pytest.raises(InputError, match=r"column 'month', row 91 .* is missing, one of 270 such rows"):
        read_logs("log", by="month", **COLUMNS)


def test_a_folder_that_gains_a_file_while_it_is_read():
    in_parts("log/day{}.parquet")
    scan = scan_log("log", **COLUMNS)
    pq.write_table(TABLE[:3], "log/late.parquet")
    with pytest.raises(InputError, match=r"late\.parquet: appeared while the files of log were read"):
        scan.read()


def test_a_database_that_is_written_to_in_the_meantime():
    in_sqlite()
    scan = scan_log("sqlite:///log.db", **QUERY, **COLUMNS)
    before = scan.read()
    with sqlite3.connect("log.db") as database:
        database.execute("DELETE FROM log WHERE round > 3")
    database.close()
    assert_equal_logs(scan.read(), before)
    del scan


def test_decimals_are_numbers_and_sums_whole_numbers():
    import duckdb

    with duckdb.connect("log.duckdb") as database:
        database.execute(
            "CREATE TABLE log AS SELECT sum(i // 2) AS round, i % 2 AS chosen, (i / 4)::DECIMAL(9, 2) AS price "
            "FROM range(8) t(i) GROUP BY i ORDER BY i"
        )
    log = read_log("duckdb:///log.duckdb", sql="SELECT * FROM log ORDER BY round, chosen")
    assert log.round_ids.tolist() == [0, 1, 2, 3]
    assert log.dense[:, 0].tolist() == [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 1.75]


REFUSED = {
    "no such file": ("none.csv", {}, r"^none\.csv: there is no such file: check the path$"),
    "no such file in a list": (["log.csv", "none.csv"], {}, r"^none\.csv: there is no such file"),
    "twice in a list": (["log.csv", "./log.csv"], {}, r"log\.csv: is named twice"),
    "an empty list": ([], {}, "^there are no files"),
    "a list of tables": ([TABLE, TABLE], {}, "^a list of Table is not a log"),
    "an empty folder": ("empty", {}, "^empty: is an empty folder"),
    "two formats": ("mixed", {}, r"^mixed/b\.parquet: is not in the format of mixed/a\.csv, long CSV"),
    "an unknown suffix": ("odd", {}, r"^odd/notes\.md: has none of the known suffixes"),
    "a pattern": ("none*.csv", {}, r"^none\*\.csv: no file matches"),
    "an unknown scheme": ("htp://host/log.csv", {}, r"^htp://host/log\.csv: htp:// is not a place"),
    "a scheme with a secret": ("ftp://bob:hush@host/log.csv", {}, r"^ftp://\*\*\*@host/log\.csv: ftp:// is no"),
    "sql for a file": ("log.csv", {"sql": "log"}, r"^log\.csv: is not a database, so `sql`"),
    "sql for a table": (TABLE, {"sql": "log"}, "^the table: is not a database"),
    "no sql": ("sqlite:///log.db", {}, r"^sqlite:///log\.db: pass sql='SELECT"),
    "no database": ("sqlite:///none.db", QUERY, r"^sqlite:///none\.db: there is no file none\.db"),
    "no database, duckdb": ("duckdb:///none.db", QUERY, r"^duckdb:///none\.db: there is no file none\.db"),
    "two slashes": ("sqlite://log.db", QUERY, r"^sqlite://log\.db: write sqlite:///file\.db, or sqlite:////folder"),
    "no database but text": ("sqlite:///log.csv", QUERY, "not a database"),
    "no database but text, duckdb": ("duckdb:///log.csv", QUERY, "is not a DuckDB database"),
    "bad sql": ("sqlite:///log.db", {"sql": "SELEC * FROM log"}, "syntax error"),
    "bad sql, duckdb": ("duckdb:///log.duckdb", {"sql": "SELEC * FROM log"}, "syntax error"),
    "no rows": ("sqlite:///log.db", {"sql": "SELECT * FROM log WHERE 0"}, "the query gives no rows"),
    "no rows, duckdb": ("duckdb:///log.duckdb", {"sql": "SELECT * FROM log WHERE false"}, "the query gives no rows"),
    "no select": ("sqlite:///log.db", {"sql": "DROP TABLE log"}, "readonly|read-only"),
    "no select, duckdb": ("duckdb:///log.duckdb", {"sql": "DROP TABLE log"}, "read-only"),
    "no table": ("sqlite:///log.db", {"sql": "logs"}, "no such table"),
    "two kinds": (
        "sqlite:///log.db",
        {"sql": "SELECT n AS round, 1 AS chosen, CASE WHEN n < 70000 THEN n ELSE 'x' END AS price FROM many"},
        r"column 'price' holds .*: make it one kind, as in SELECT CAST\(price AS REAL\)",
    ),
    "no server": ("postgresql://bob:hush@127.0.0.1:1/db", QUERY, r"^postgresql://\*\*\*@127\.0\.0\.1:1/db: cannot"),
    "an old feather": ("old.feather", {}, "is Feather of version 1"),
    "no feather": ("text.feather", {}, "is no Arrow file"),
    "a cut feather": ("cut.feather", {}, "without its end"),
    "half a zst": ("half.csv.zst", {}, "cannot be decompressed"),
    "half a bz2": ("half.csv.bz2", {}, "cannot be decompressed"),
}


@pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    """A folder of what is refused."""
    folder, before = tmp_path_factory.mktemp("wrong"), Path.cwd()
    os.chdir(folder)
    for name in ("empty", "mixed", "odd"):
        Path(name).mkdir()
    pc.write_csv(TABLE, "log.csv")
    pc.write_csv(TABLE, "mixed/a.csv")
    pq.write_table(TABLE, "mixed/b.parquet")
    Path("odd/notes.md").write_text("hello")
    in_sqlite()
    in_duckdb()
    with sqlite3.connect("log.db") as database:
        database.execute(
            "CREATE TABLE many AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c "
            "WHERE n < 80000) SELECT n FROM c"
        )
    database.close()
    Path("old.feather").write_bytes(b"FEA1" + bytes(100))
    Path("text.feather").write_text("round,chosen\n")
    pf.write_feather(TABLE, "whole.feather")
    Path("cut.feather").write_bytes(Path("whole.feather").read_bytes()[:-100])
    Path("half.csv.zst").write_bytes(zstd(as_csv())[:-50])
    Path("half.csv.bz2").write_bytes(bz2.compress(as_csv())[:-50])
    os.chdir(before)
    return folder


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("opened", [read_log, scan_log])
def test_what_is_refused(wrong, monkeypatch, case, opened):
    monkeypatch.chdir(wrong)
    source, options, said = REFUSED[case]
    with pytest.raises(InputError, match=said) as caught:
        opened(source, **options)
    chain, error = "", caught.value
    while error is not None:
        chain, error = chain + str(error), error.__cause__ or error.__context__
    assert "\n" not in str(caught.value)
    assert "hush" not in chain


def test_a_missing_extra_is_named(monkeypatch):
    in_sqlite()
    for module in ("adbc_driver_sqlite", "adbc_driver_postgresql", "duckdb"):
        monkeypatch.setitem(sys.modules, module, None)
    in_file("log.duckdb", bytes(8) + b"DUCK")
    for address in ("sqlite:///log.db", "postgresql://host/db", "duckdb:///log.duckdb"):
        with pytest.raises(InputError, match=r"databases need an extra: pip install 'onlooker\[sql\]'$"):
            read_log(address, sql="log")


def test_a_server_that_does_not_answer_is_given_up_on(monkeypatch):
    import socket

    monkeypatch.setenv("PGCONNECT_TIMEOUT", "2")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(InputError, match="timeout expired"):
            read_log(f"postgresql://bob@127.0.0.1:{silent.getsockname()[1]}/db", sql="log")


def test_what_does_not_fit_on_the_disk_is_refused(monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1000))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(as_csv())))
    in_sqlite()
    for source, options in (("-", {}), ("sqlite:///log.db", QUERY), (TABLE.to_reader(), {})):
        with pytest.raises(InputError, match=r"has 0 MB of room: set TMPDIR to a folder with more"):
            scan_log(source, **options)


def test_copies_go_with_what_they_were_made_for(tmp_path):
    in_sqlite()
    read_log("sqlite:///log.db", **QUERY, **COLUMNS)
    assert not [*(tmp_path / "copies").iterdir()]
    scan = scan_log("sqlite:///log.db", **QUERY, **COLUMNS)
    assert len([*(tmp_path / "copies").iterdir()]) == 1
    threading.Thread(target=scan.read).run()
    del scan


def test_a_copy_that_is_pickled_has_no_folder_to_delete():
    import pickle

    spool = Spool()
    assert pickle.loads(pickle.dumps(spool)) is None
    assert spool.folder.exists()
    spool.close()


def bomb(rows):
    sink = pa.BufferOutputStream()
    table = pa.table({"round": np.zeros(rows, int), "chosen": np.zeros(rows, int), "price": np.zeros(rows)})
    pf.write_feather(table, sink, compression="zstd", chunksize=rows)
    return sink.getvalue().to_pybytes()


def test_an_arrow_file_that_unpacks_to_too_much_is_refused_before_it_is():
    in_file("bomb.feather", bomb(2_000_000))
    with pytest.raises(
        InputError, match=r"^bomb\.feather: has [\d,]+ bytes that unpack to 48,000,000, which is beyond"
    ):
        read_log("bomb.feather")


def test_damaged_arrow_files_are_refused_in_one_line():
    sink = pa.BufferOutputStream()
    pf.write_feather(TABLE, sink, compression="lz4", chunksize=100)
    content, rng = sink.getvalue().to_pybytes(), np.random.default_rng(0)
    for _ in range(60):
        broken = bytearray(content)
        for place in rng.integers(0, len(broken), rng.integers(1, 9)):
            broken[place] = rng.integers(256)
        in_file("log.feather", bytes(broken))
        # What still reads is no worse than what it holds; anything else is refused.
        with suppress(InputError):
            read_log("log.feather", features=["price", "size"])
