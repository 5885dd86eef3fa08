"""A warning names the line that read the log, not one inside the library."""

import warnings

import pyarrow.csv as pc
import pytest

from onlooker import BanditLog, OnlookerWarning, read_log, scan_log

TABLES = {
    "a column that is left out": ("same", lambda _: "x"),
    "times out of order": ("time", lambda row: f"{2024 - row // 2}-01-01"),
    "a feature of picks alone": ("depth", lambda row: row % 2),
}
READERS = {
    "read_log": read_log,
    "from_frame": lambda path: BanditLog.from_frame(pc.read_csv(path)),
    "scan_log": lambda path: list(scan_log(path)),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("reader", READERS)
def test_warnings_point_at_the_caller(tmp_path, table, reader):
    name, value = TABLES[table]
    rows = [f"{row // 2},{row % 2},{row % 7},{value(row)}\n" for row in range(200)]
    path = tmp_path / "log.csv"
    path.write_text(f"round,chosen,price,{name}\n" + "".join(rows), encoding="utf-8")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        READERS[reader](path)
    places = {one.filename for one in caught if issubclass(one.category, OnlookerWarning)}
    assert places == {__file__}
