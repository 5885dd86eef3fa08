"""Times as text: what order they say, what says none, and times that nobody sorted by."""

import itertools
import json
import warnings
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlooker import BanditLog, read_log, read_logs, scan_log
from onlooker.base.errors import ColumnsLeftOutWarning, InputError, TimesOutOfOrderWarning
from onlooker.logs.timestamps import as_times, microseconds, moment

# In order of time: with and without a zone, dates and moments.
TIMES = [
    "2023-12-31",
    "2024-01-01T00:30:00+01:00",
    "2024-01-01 00:00",
    "2024-01-01T01:00:00Z",
    "2024-01-01T00:30-02:00",
]


def write(path, columns):
    names = list(columns)
    rows = [dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    if path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    elif path.suffix == ".csv":
        path.write_text("\n".join([",".join(names), *(",".join(map(str, row.values())) for row in rows), ""]))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def rounds(times):
    """A round of two arms for every time."""
    ids = np.repeat(np.arange(len(times)), 2).tolist()
    price = np.arange(2.0 * len(times)).tolist()
    return {"round": ids, "chosen": [1, 0] * len(times), "time": np.repeat(times, 2).tolist(), "price": price}


each_format = pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])


@each_format
def test_text_times_of_iso_8601_are_put_in_order(tmp_path, suffix):
    for order in itertools.islice(itertools.permutations(range(len(TIMES))), 0, 120, 17):
        path = write(tmp_path / f"log{suffix}", rounds([TIMES[i] for i in order]))
        expected = sorted(range(len(order)), key=order.__getitem__)
        assert read_log(path, order_by="time").round_ids.tolist() == expected


@each_format
def test_text_times_that_say_no_order_are_refused(tmp_path, suffix):
    path = write(tmp_path / f"log{suffix}", rounds(["01/14/2024 08:17", "02/02/2024 08:17"]))
    message = r"column 'time', row 1 .*is '01/14/2024 08:17'.*: write times as ISO 8601, .* or as numbers"
    with pytest.raises(InputError, match=message):
        read_log(path, order_by="time")
    with pytest.raises(InputError, match=message):
        list(scan_log(path, order_by="time"))


def test_text_of_whole_numbers_counts_as_numbers():
    log = BanditLog.from_frame(pa.table(rounds(["10", "9", "-1"])), order_by="time")
    assert log.round_ids.tolist() == [2, 1, 0]
    with pytest.raises(InputError, match=r"row 3 .*is '2.5 h'"):
        BanditLog.from_frame(pa.table(rounds(["2024-01-01", "2.5 h"])), order_by="time")


def test_nested_parquet_sorts_text_times_too(tmp_path):
    table = {"chosen": [0, 1, 0], "arms": [[[1.0], [2.0]], [[3.0], [4.0]], [[5.0], [6.0]]], "round": [0, 1, 2]}
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(table | {"t": ["2024-01-01T02:00Z", "2024-01-01T02:00+01:00", "2024-01-03"]}), path)
    assert read_log(path, order_by="t").round_ids.tolist() == [1, 0, 2]
    with pytest.raises(InputError, match="'t' falls from"):
        list(scan_log(path, order_by="t"))
    pq.write_table(pa.table(table | {"t": ["2024-01-01", "5/1/2024", "2024-01-03"]}), path, row_group_size=1)
    for read in (read_log, lambda *a, **k: list(scan_log(*a, **k))):
        with pytest.raises(InputError, match=r"column 't', round 1 .*is '5/1/2024'.*ISO 8601"):
            read(path, order_by="t")


def test_a_scan_refuses_times_after_numbers(tmp_path):
    first = write(tmp_path / "a.jsonl", rounds(["1", "2"]))
    later = {"round": [7, 7], "chosen": [1, 0], "price": [1.0, 2.0]}
    for time, message in (("2024-01-01T00:00:00,5", "mixes numbers and times"), ("2024-01-01", "of another kind")):
        second = write(tmp_path / "b.jsonl", {**later, "time": [time] * 2})
        with pytest.raises(InputError, match=message):
            list(scan_log([first, second], order_by="time", batch_rows=2))


@each_format
@pytest.mark.filterwarnings("ignore::onlooker.base.errors.ColumnsLeftOutWarning")
def test_times_out_of_order_that_nobody_sorted_by_are_told(tmp_path, suffix):
    days = [f"2024-01-{day:02}" for day in (1, 3, 2)]
    path = write(tmp_path / f"log{suffix}", rounds(days))
    for read in (read_log, scan_log):
        with pytest.warns(TimesOutOfOrderWarning, match="'time' looks like a time and is not in order: .*`order_by`"):
            read(path)


def warned(read, *arguments, **options):
    """Kinds of all warnings, also of those that were given before."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        read(*arguments, **options)
    return [warning.category for warning in caught]


def test_arrow_times_out_of_order_are_told_once_and_only_then(tmp_path):
    path = tmp_path / "log.parquet"
    for times, told in (([1, 3, 2], [TimesOutOfOrderWarning]), ([1, 2, 3], [])):
        table = rounds(times)
        pq.write_table(pa.table(table | {"time": pa.array(table["time"], pa.timestamp("s"))}), path)
        for read in (read_log, scan_log):
            assert warned(read, path) == [ColumnsLeftOutWarning, *told]
        assert not warned(read_log, path, order_by="time")
        assert not warned(read_log, path, features=["price"])


def test_every_learner_has_its_own_order_of_time(tmp_path):
    table = rounds(["2024-01-01", "2024-01-02", "2024-01-01", "2024-01-02"])
    for shops, told in ((["a", "a", "b", "b"], 0), (["a", "b", "b", "a"], 1)):
        path = write(tmp_path / "log.csv", table | {"shop": np.repeat(shops, 2).tolist()})
        assert warned(read_logs, path, by="shop").count(TimesOutOfOrderWarning) == told


@pytest.mark.parametrize(
    "times", [["31.12.2023", "1.1.2024", "02.01.2024"], ["31.12.2023 9:05", "31.12.2023 10:00", "01.01.2024 00:00:01"]]
)
def test_dates_with_points_begin_with_the_day(tmp_path, times):
    columns = {
        "round": ["c", "c", "a", "a", "b", "b"],
        "chosen": [1, 0] * 3,
        "x": [3.0, 4.0, 1.0, 2.0, 5.0, 1.0],
        "when": [times[2], times[2], times[0], times[0], times[1], times[1]],
    }
    path = tmp_path / "log.csv"
    write(path, columns)
    assert read_log(path, order_by="when").round_ids.tolist() == ["a", "b", "c"]
    with pytest.warns(TimesOutOfOrderWarning, match="'when' looks like a time and is not in order"):
        read_log(path, features=None)


@pytest.mark.parametrize("text", ["31.13.2024", "32.1.2024", "1.2.24", "1.2.2024 25:00", "1/2/2024", "10.1.1.2024"])
def test_what_is_no_date(text):
    with pytest.raises(ValueError, match=r"."):
        moment(text)


ODD = [
    "2024-W03",
    "20240114",
    "1.2.2024 8:17",
    "2024-01-14T08:17:01.1234567",
    "2024-01-14t08:17",
    "2024-01-14T08:17:01,5",
]


@pytest.mark.parametrize("odd", [None, *ODD, "soon", "0000-01-01", "2024-02-30", ""])
@pytest.mark.parametrize("zone", ["", "Z", "-02:30"])
def test_what_arrow_reads_and_what_python_reads_are_the_same_times(odd, zone):
    texts = [f"{year:04}-{month:02}-28T08:17:01.5{zone}" for year in (1, 1969, 2024, 9999) for month in (1, 12)]
    if odd is not None:
        texts.insert(len(texts) // 2, odd)
    expected = []
    for text in texts:
        try:
            expected.append((moment(text) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1))
        except ValueError:
            expected.append(None)
    for order in (texts, texts[::-1]):
        assert microseconds(pa.array(order, pa.large_string())).to_pylist() == expected
        expected.reverse()


@pytest.mark.parametrize("digits", [7, 9])
def test_digits_beyond_microseconds_are_cut_off(digits):
    texts = [f"{year}-05-01T10:00:00.{'1239' * 3:.{digits}}Z" for year in (2024, 1969, 2500)]
    for some in (texts[:1], texts):
        found = as_times(np.array(some, dtype=object), "time")
        assert found.tolist() == [moment(text).replace(tzinfo=None) for text in some]


def test_a_year_zero_is_refused_where_it_stands():
    with pytest.raises(InputError, match=r"row 2 .*is '0000-01-01', which says no order"):
        as_times(np.array(["2024-01-01", "0000-01-01"], dtype=object), "time")


SHAPES = {
    "contexts": ({"context": ["age"], "arm": "shown"}, {"shown": ["a", "b", "a", "b"] * 5}),
    "offers": ({"context": ["age"], "arm": "shown", "offered": "on"}, {"shown": ["a", "b"] * 10, "on": ["a|b"] * 20}),
    "wide": ({}, {"chosen": [1, 2] * 10, "arm1_x": np.arange(20) / 7, "arm2_x": np.arange(20) / 9}),
    "candidates": ({}, {"chosen": [0, 1] * 10, "candidates": [[{"x": k / 7}, {"x": k / 9}] for k in range(20)]}),
}


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.int64()], ids=str)
@pytest.mark.parametrize("shape", SHAPES)
def test_times_of_rows_that_are_rounds_are_watched_too(tmp_path, shape, kind):
    """A burn-in discards the first rows, so newest first would discard the wrong end without a word."""
    options, columns = SHAPES[shape]
    path = tmp_path / "log.parquet"
    for times, told in ((range(20), 0), (range(20, 0, -1), 1)):
        table = pa.table({"age": np.arange(20) / 3, **columns, "timestamp": pa.array(times, pa.int64()).cast(kind)})
        pq.write_table(table, path)
        for read in (lambda **more: read_log(path, **more), lambda table=table, **more: read_log(table, **more)):
            assert warned(read, **options).count(TimesOutOfOrderWarning) == told
        assert TimesOutOfOrderWarning not in warned(read_log, path, order_by="timestamp", **options)
        if options:
            assert warned(scan_log, path, **options).count(TimesOutOfOrderWarning) == told


def test_every_learner_of_rows_that_are_rounds_has_its_own_order():
    options, columns = SHAPES["contexts"]
    days = pa.array([*range(10), *range(10)], pa.int64()).cast(pa.timestamp("s"))
    for shops, told in ((np.repeat(["a", "b"], 10), 0), (["a"] * 19 + ["b"], 1)):
        table = pa.table({"age": np.arange(20) / 3, **columns, "when": days, "shop": shops})
        assert warned(read_logs, table, by="shop", **options).count(TimesOutOfOrderWarning) == told
