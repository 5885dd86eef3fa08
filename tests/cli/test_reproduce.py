"""`onlooker reproduce`, on its quick grid."""

import json

import pytest

from onlooker.experiments.tables import read_csv

QUICK = ("reproduce", "--quick", "--seeds", 1, "--figure", "appendixA", "--out")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the first test that needs it puts the quick grid's one figure."""
    return tmp_path_factory.mktemp("paper") / "out"


def test_everything_is_written(run, tmp_path):
    folder = tmp_path / "out"
    ran = run("reproduce", "--quick", "--seeds", 2, "--out", folder)
    assert ran.code == 0, ran.err
    names = {path.name for path in folder.iterdir()}
    assert {"results.csv", "diagnostics.csv", "claims.md", "claims.json", "index.html", "figures", "cells"} <= names
    results = read_csv(folder / "results.csv")
    assert len(results) == 2 * 2 * 3 * (1 + 3 + 21)
    assert len(read_csv(folder / "diagnostics.csv")) == 2 * (10 + 10 + 19)
    figures = {path.name for path in (folder / "figures").iterdir()}
    for name in ("figure1-d5-K20", "figure2-d5-K20"):
        assert {f"{name}.png", f"{name}.svg", f"{name}.csv"} <= figures
    assert "inconclusive" in (folder / "claims.md").read_text()
    assert "index.html" in ran.out


def test_one_figure_needs_its_cells_only(run, folder):
    ran = run(*QUICK, folder)
    assert ran.code == 0, ran.err
    assert all(path.name.startswith("diagnostics-") for path in (folder / "cells").iterdir())


def test_a_second_run_redoes_nothing_and_changes_no_byte(run, folder):
    if not folder.exists():
        run(*QUICK, folder)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "run.lock"]
    before = {path: path.read_bytes() for path in files}
    cells = {path: path.stat().st_mtime_ns for path in (folder / "cells").iterdir()}
    (folder / "diagnostics.csv").unlink()
    ran = run(*QUICK, folder, "--json")
    assert json.loads(ran.out)["claims"]
    assert {path: path.read_bytes() for path in files} == before
    assert all(path.stat().st_mtime_ns == when for path, when in cells.items())


def test_dry_run_writes_nothing(run, tmp_path):
    plan = json.loads(run("reproduce", "--dry-run", "--seeds", 20, "--out", tmp_path / "out", "--json").out)
    assert plan["cells"] == 260
    assert plan["minutes"] > 0
    assert plan["memory_mb"] > 400
    assert not (tmp_path / "out").exists()


def test_bad_input(refused, run, folder):
    assert "--figure figure9" in refused("reproduce", "--figure", "figure9", "--out", folder)
    if not folder.exists():
        run(*QUICK, folder)
    line = refused("reproduce", "--seeds", 1, "--figure", "appendixA", "--out", folder)
    assert str(folder) in line


def test_tracking_beside_the_papers_observers(refused, run, tmp_path):
    out = tmp_path / "out"
    ran = run("reproduce", "--quick", "--seeds", 1, "--tracking", "--figure", "figure2", "--out", out)
    assert ran.code == 0, ran.err
    tracked = [row for row in read_csv(out / "results.csv") if row["method"] == "tracking"]
    assert [row["N"] for row in tracked] == [300, 600, 1200] * 2
    line = refused("reproduce", "--quick", "--seeds", 1, "--figure", "figure2", "--out", out)
    assert "grid.observers.tracking" in line
    assert "name another folder" in line
