"""A log is opened once: every file at most twice, its format found once, tables of other libraries as files."""

import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlooker import BanditLog, read_log, read_logs, scan_log
from onlooker.base.errors import InputError
from onlooker.formats import opening, write_log, write_parts
from onlooker.formats import text_lines as compressed
from onlooker.formats.text_lines import LogFile
from strategies import assert_equal_logs


@pytest.fixture
def log():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3))
    return BanditLog(rows, np.arange(0, 61, 3), rng.integers(0, 3, 20), feature_names=["a", "b", "c"])


@pytest.fixture
def opens(monkeypatch):
    """Names of files that were opened, by Python or by Arrow, one for each time."""
    seen = []
    for name in ("_Raw", "arrow_file"):
        original = getattr(compressed, name)
        monkeypatch.setattr(compressed, name, lambda path, original=original: seen.append(path.name) or original(path))
    return seen


@pytest.mark.parametrize(
    "name",
    [
        *("log.parquet", "long.parquet", "log.csv", "log.csv.gz", "log.jsonl", "log.jsonl.gz"),
        *("log.vw", "log.vw.gz", "log.dsjson", "log.npz"),
    ],
)
def test_a_file_is_opened_at_most_twice(log, tmp_path, opens, name):
    path = tmp_path / name
    if name.startswith("long"):
        write_parts([log], path, long=True)
    else:
        write_log(log, path)
    found = opening.open_log(path, {})
    assert found.log.n_rounds == 20
    assert found.assumed[0].startswith(f"read as {found.format.name}")
    assert list(found.files) == [path]
    assert 1 <= len(opens) <= 2
    assert set(opens) == {name}


def test_many_row_groups_are_read_through_one_open_file(log, tmp_path, opens):
    write_parts([log[t : t + 1] for t in range(20)], tmp_path / "log.parquet")
    assert pq.ParquetFile(tmp_path / "log.parquet").num_row_groups == 20
    assert_equal_logs(read_log(tmp_path / "log.parquet"), log)
    assert opens == ["log.parquet"]


def test_the_format_is_found_once(log, tmp_path, monkeypatch):
    write_log(log, tmp_path / "log.csv")
    original, asked = opening.find_format, []
    monkeypatch.setattr(opening, "find_format", lambda file: asked.append(file.path.name) or original(file))
    opening.open_log(tmp_path / "log.csv", {})
    opening.open_scan(tmp_path / "log.csv", {})
    assert asked == ["log.csv", "log.csv"]


def test_readers_of_one_file_do_not_share_a_place(tmp_path):
    path = tmp_path / "log.txt"
    path.write_bytes(bytes(range(200)) * 10_000)
    with LogFile(path) as file, file.stream() as one, file.stream() as other:
        assert one.read(300_000) == other.read(300_000)
        with file.native() as native:
            assert native.get_stream(0, 4).read() == b"\0\1\2\3"
        assert one.read(10) == other.read(10)
        assert file.plain().read(4) == b"\0\1\2\3"


def test_a_scan_of_many_files_keeps_none_of_them_open(log, tmp_path):
    for day in range(30):
        write_log(log, tmp_path / f"day{day}.parquet")
        rounds = BanditLog(log.features, log.offsets, log.chosen, round_ids=np.arange(20) + 20 * day)
        write_log(rounds, tmp_path / f"day{day}.csv")
    before = len([*Path("/dev/fd").iterdir()])
    scans = [scan_log(tmp_path / "*.parquet"), scan_log(tmp_path / "*.csv")]
    assert len([*Path("/dev/fd").iterdir()]) <= before + 2
    assert [sum(part.n_rounds for part in scan) for scan in scans] == [600, 600]


TABLE = pa.table(
    {
        "round": [1, 1, 1, 2, 2, 3, 3, 3],
        "arm": ["x", "y", "z", "x", "z", "x", "y", "z"],
        "chosen": [0, 1, 0, 1, 0, 0, 0, 1],
        "price": [9.0, 7.5, 8.0, 7.0, 6.5, 9.0, 8.0, 5.5],
        "colour": ["red", "blue", "red", "blue", "blue", "red", "red", "blue"],
        "reward": [0, 1, 0, 0, 0, 0, 0, 1],
        "shop": ["n", "n", "n", "s", "s", "n", "n", "n"],
    }
)


class Foreign:
    """A table of a library that nobody knows."""

    def __init__(self, table, *, once=False):
        self._table, self._once = table, once

    def __arrow_c_stream__(self, requested_schema=None):
        if self._once is None:
            raise ValueError("the stream was consumed")
        self._once = None if self._once else self._once
        return self._table.__arrow_c_stream__(requested_schema)


SOURCES = {
    "pyarrow": lambda table: table,
    "polars": pl.from_arrow,
    "pandas": lambda table: table.to_pandas(),
    "reader": lambda table: table.to_reader(max_chunksize=3),
    "batch": lambda table: table.combine_chunks().to_batches()[0],
    "foreign": Foreign,
    "foreign once": lambda table: Foreign(table, once=True),
}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("columns", [{}, {"features": ["price"]}, {"categories": ["shop"], "arm": "arm"}], ids=str)
def test_a_table_gives_the_log_of_the_same_rows_in_a_file(tmp_path, kind, columns):
    pq.write_table(TABLE, tmp_path / "log.parquet")
    assert_equal_logs(read_log(SOURCES[kind](TABLE), **columns), read_log(tmp_path / "log.parquet", **columns))


@pytest.mark.parametrize("kind", SOURCES)
def test_logs_are_told_apart_in_a_table_too(tmp_path, kind):
    pq.write_table(TABLE, tmp_path / "log.parquet")
    expected, found = read_logs(tmp_path / "log.parquet", by="shop"), read_logs(SOURCES[kind](TABLE), by="shop")
    assert list(found) == list(expected) == ["n", "s"]
    for name, log in found.items():
        assert_equal_logs(log, expected[name])


@pytest.mark.parametrize("kind", ["pyarrow", "polars", "pandas"])
@pytest.mark.parametrize("rows", [1, 4, 100])
def test_a_table_that_can_be_read_again_is_scanned(tmp_path, kind, rows):
    pq.write_table(TABLE, tmp_path / "log.parquet")
    scan = scan_log(SOURCES[kind](TABLE), batch_rows=rows)
    assert repr(scan) == "LogScan(the table, 3 features)"
    for _ in range(2):
        assert_equal_logs(scan.read(), read_log(tmp_path / "log.parquet"))


@pytest.mark.parametrize("kind", ["reader", "foreign", "foreign once"])
def test_a_stream_is_copied_to_be_scanned(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    scan = scan_log(SOURCES[kind](TABLE), batch_rows=3)
    for _ in range(2):
        assert_equal_logs(scan.read(), read_log(TABLE))
    assert [*tmp_path.rglob("rows.arrow")]
    del scan
    assert not [*tmp_path.iterdir()]


def test_a_table_that_gives_other_rows_later_is_refused():
    class Shrinking(Foreign):
        def __len__(self):
            return len(self._table)

        def __arrow_c_stream__(self, requested_schema=None):
            table, self._table = self._table, self._table[:5]
            return table.__arrow_c_stream__(requested_schema)

    with pytest.raises(InputError, match=r"^the table gave 8 rows at first and 5 rows later: write it to a file$"):
        scan_log(Shrinking(TABLE)).read()


@pytest.mark.parametrize(
    ("table", "message", "columns"),
    [
        (TABLE.drop_columns("round"), r"^the table has no column 'round': it has", {}),
        (TABLE, r"^the table has no option 'arms': it takes round, chosen", {"arms": "price"}),
        (TABLE, r"^the table has one way to write numbers: leave `decimal` out$", {"decimal": ","}),
        (TABLE[:0], r"^the table has no rows", {}),
        (TABLE.set_column(3, "price", [[1.0, None, 3, 4, 5, 6, 7, 8]]), r"^the table: column 'price'.* missing", {}),
        (TABLE.append_column("price", TABLE["price"]), r"^the table has the column 'price' twice", {}),
    ],
)
@pytest.mark.parametrize("kind", ["pyarrow", "reader"])
def test_what_is_wrong_with_a_table_is_said_in_one_line(kind, table, message, columns):
    with pytest.raises(InputError, match=message) as caught:
        read_log(SOURCES[kind](table), **columns)
    assert "\n" not in str(caught.value)


def test_a_table_that_fails_while_it_is_read():
    def batches():
        yield TABLE.to_batches()[0]
        raise RuntimeError("the database\nis gone")

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(InputError, match=r"^the table cannot be read as Arrow data \(.*the database is gone.*\)"):
        read_log(reader)


@pytest.mark.parametrize("source", [3, None, {"round": [1]}])
def test_what_is_neither_a_path_nor_a_table(source):
    with pytest.raises(InputError, match="is not a path: pass a file's name, or a table"):
        read_log(source)


def test_times_that_fall_are_told_of_a_table_as_of_a_file(tmp_path):
    times = pa.array([30, 30, 30, 20, 20, 10, 10, 10], pa.timestamp("s"))
    table = TABLE.append_column("time", times)
    pq.write_table(table, tmp_path / "log.parquet")
    told = []
    for source in (tmp_path / "log.parquet", table, table.to_reader()):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            read_log(source)
        told.append(sorted(str(one.message) for one in caught))
    assert told[0] == told[1] == told[2] != []


@pytest.mark.parametrize("kind", ["Categorical", "Enum"])
def test_categories_of_polars_are_read_as_text(kind):
    polars = pytest.importorskip("polars")
    columns = {"round": [1, 1, 2, 2], "chosen": [1, 0, 0, 1], "c": ["x", "y", "y", "x"], "p": [1.0, 2, 3, 4]}
    frame = polars.DataFrame(columns)
    like = polars.Categorical if kind == "Categorical" else polars.Enum(["x", "y"])
    log, plain = read_log(frame.with_columns(polars.col("c").cast(like))), read_log(frame)
    assert log.feature_names == plain.feature_names == ("c=y", "p")
    np.testing.assert_array_equal(log.features, plain.features)
