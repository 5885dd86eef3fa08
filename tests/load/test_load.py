"""The load commands in seconds: they pass, and each notices what it is there to notice."""

from itertools import count
from pathlib import Path

import load_follow
import load_sweep
import pytest

import load
from onlooker.experiments.tables import read_csv, write_csv

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc"),
]


def test_larger_than_memory(tmp_path, capsys, monkeypatch):
    """A log of 60 MB, where the limit leaves 50 for rounds and all the work on them."""
    monkeypatch.setenv("ONLOOKER_THREADS", "2")
    assert load.larger_than_memory("500MB", 0.12, tmp_path) == "all peaks are below the limit"
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()[1:]] == ["fit", "diagnose", "track"]


def test_a_peak_above_the_limit_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(load.out_of_core, "apart", lambda *_: {"peak": 501_000_000, "seconds": 1.0})
    with pytest.raises(SystemExit, match="fit took more memory than the limit"):
        load.larger_than_memory("500MB", 0.01, tmp_path)


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    return folder, load_sweep.check(40, folder, 1)


def test_sweep(swept):
    assert "40 cells, each there once" in swept[1]


def test_a_table_that_lost_or_changed_rows_is_noticed(swept, tmp_path):
    grid = load_sweep.grid_of(40)
    rows = read_csv(swept[0] / "table.csv")
    write_csv(tmp_path / "table.csv", rows[:-1], load_sweep.COLUMNS)
    with pytest.raises(SystemExit, match="every cell once"):
        load_sweep._check_table(grid, tmp_path)
    for row in rows:
        row["direction_error"] += 1e-9
    write_csv(tmp_path / "table.csv", rows, load_sweep.COLUMNS)
    with pytest.raises(SystemExit, match="differs from the cell computed alone"):
        load_sweep._check_table(grid, tmp_path)


def test_processes_that_grow_are_noticed(swept, monkeypatch):
    monkeypatch.setattr(load_sweep, "_watch", lambda *_, **__: ([200.0, 201.0], [200.0, 220.0]))
    with pytest.raises(SystemExit, match="worker process grew by more than 10 MB"):
        load_sweep.check(40, swept[0], 1)


def test_follow(tmp_path):
    said = load_follow.check(20_000, 0.0, tmp_path)
    assert "20,000 rounds" in said
    assert "saved and loaded 2 times" in said


def test_growth_while_following_is_noticed(tmp_path, monkeypatch):
    megabytes = count(200)
    monkeypatch.setattr(load_follow, "resident", lambda: float(next(megabytes)))
    with pytest.raises(SystemExit, match="more than 5 MB of growth"):
        load_follow.check(10_000, 0.0, tmp_path)
