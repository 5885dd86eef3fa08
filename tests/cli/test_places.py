"""Commands on logs that are not one file: order, copies, what is refused, and nothing secret in what they print."""

import io
import json
import sqlite3
from pathlib import Path
from types import SimpleNamespace

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from place_logs import log_table, parts, records

TABLE = log_table().select(["round", "chosen", "price", "size", "shop"])
SECRET = "planted-S3cr3t"  # noqa: S105  it is looked for


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    (tmp_path / "copies").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "copies"))
    return tmp_path / "here"


def days(*numbers):
    names = [f"day{number}.csv" for number in numbers]
    for name, part in zip(names, parts(TABLE, whole=True), strict=True):
        pc.write_csv(part, name)
    return names


def database():
    with sqlite3.connect("log.db") as opened:
        opened.execute("CREATE TABLE log (round INTEGER, chosen INTEGER, price REAL, size REAL, shop TEXT)")
        opened.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?)", records(TABLE))
    opened.close()


def test_every_way_to_name_a_log_gives_the_same_answer(run, monkeypatch):
    names = days(1, 2, 10)
    pq.write_table(TABLE, "whole.parquet")
    database()
    expected = json.loads(run("fit", "whole.parquet", "--burn-in", "naive", "--json").out)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(Path("whole.parquet").read_bytes())))
    ways = [[*sorted(names)], ["day*.csv"], ["sqlite:///log.db", "--sql", "log"], ["-"]]
    for way in ways:
        found = json.loads(run("fit", *way, "--burn-in", "naive", "--json").out)
        assert {**found, "log": "", "assumed": ""} == {**expected, "log": "", "assumed": ""}, way


def test_files_in_the_order_of_a_shell_are_taken_by_number_and_others_as_they_are(run):
    names = days(1, 2, 10)
    ran = run("convert", *sorted(names), "log.parquet")
    assert "3 files, in this order: day1.csv, day2.csv, day10.csv" in ran.out
    assert (
        "3 files, in this order: day2.csv, day10.csv, day1.csv"
        in run("diagnose", "day2.csv", "day10.csv", "day1.csv").out
    )


def test_a_stream_is_read_once_by_a_command_that_opens_it_twice(run, monkeypatch, tmp_path):
    database()
    for _ in range(2):
        pq.write_table(TABLE, "day.parquet")
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(Path("day.parquet").read_bytes())))
        ran = run("track", "-", "--state", "state.json")
        assert ran.code == 0, ran.err
    assert "nothing is new" in ran.out
    assert not [*(tmp_path / "copies").iterdir()]


COMMANDS = {
    "fit": ["--out", "out.json"],
    "diagnose": [],
    "track": ["--out", "out.json", "--state", "state.json"],
    "report": ["--out", "out.html"],
    "compare": ["--out", "out.csv", "--observer", "naive"],
    "propensities": ["--out", "out.csv"],
    "convert": [],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("log", "said"),
    [
        (["none.csv"], "there is no such file"),
        (["whole.csv", "none.csv"], "none.csv: there is no such file"),
        (["empty"], "is an empty folder"),
        (["mixed"], "is not in the format of"),
        (["whole.csv", "whole.csv"], "is named twice"),
        (["htp://x/log.csv"], "htp:// is not a place"),
        (["whole.csv", "--sql", "log"], "is not a database, so --sql does not apply"),
        (["sqlite:///log.db"], "add --sql 'SELECT ...'"),
        (["sqlite:///log.db", "--sql", "SELEC"], "SELEC"),
        (["sqlite:///log.db", "--sql", "SELECT * FROM log WHERE 0"], "the query gives no rows"),
        ([f"postgresql://bob:{SECRET}@127.0.0.1:1/db", "--sql", "log"], "***@127.0.0.1:1/db: cannot be read"),
    ],
)
def test_what_is_refused_in_one_line(refused, folder, tmp_path, command, log, said):
    for name in ("empty", "mixed"):
        Path(name).mkdir()
    pc.write_csv(TABLE, "mixed/a.csv")
    pc.write_csv(TABLE, "whole.csv")
    pq.write_table(TABLE, "mixed/b.parquet")
    database()
    before = sorted(folder.rglob("*"))
    if command == "convert":
        log = [*log, "out.csv"]
    line = refused(command, *log, *COMMANDS[command])
    assert said in line
    assert SECRET not in line
    assert [one for one in sorted(folder.rglob("*")) if not one.name.startswith(".state")] == before
    assert not [*(tmp_path / "copies").iterdir()]


@pytest.mark.parametrize("extra", [[], ["--by", "shop"]])
def test_nothing_secret_is_printed_or_written(run, folder, extra):
    database()
    log = [f"sqlite:///log.db?token={SECRET}", "--sql", "log"]
    for command, written in COMMANDS.items():
        if extra and command not in {"fit", "report", "diagnose", "track"}:
            continue
        given = log if command != "convert" else [log[0], "log.parquet", *log[1:]]
        files = [] if extra and command in {"fit", "track"} else written
        for more in ([], ["--json"]):
            ran = run(command, *given, *files, *extra, *more)
            assert ran.code == 0, (command, ran.err)
            assert SECRET not in ran.out + ran.err
            assert "sqlite:///log.db?***" in ran.out
    for path in folder.rglob("*"):
        assert SECRET.encode() not in path.read_bytes(), path.name
    page = (folder / "out.html").read_text()
    assert "sqlite:///log.db?***" in page


def test_a_target_that_is_one_of_the_files_is_refused(refused):
    names = days(1, 2, 10)
    assert "is the log itself" in refused("convert", "day*.csv", names[0])
    assert "is the log itself" in refused("convert", *names[1:], names[2])
