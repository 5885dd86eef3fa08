"""`onlooker compare`."""

import json
import sys

import pytest

from onlooker import Environment, LinUCB, simulate, write_log
from onlooker.experiments.tables import read_csv
from onlooker.observers.methods import METHODS

SMALL = ("--rounds", 2000, "--features", 4, "--arms", 10, "--seed", 2)

UNIFORM = ("--learner", "uniform", "--rounds", 500, "--features", 3)


def test_simulated(run):
    document = json.loads(run("compare", *SMALL, "--json").out)
    errors = {row["name"]: row["direction_error"] for row in document["rows"]}
    assert next(iter(errors)) == "learner (sees rewards)"
    oracle = errors["suffix imitation, oracle in hindsight"]
    assert oracle <= min(error for name, error in errors.items() if name.startswith("suffix")) + 1e-3
    quick = [method.title for method in METHODS if method.quick]
    assert list(errors)[1:-1] == quick
    assert all(0 < error < (1.4 if "ranked" in name else 0.5) for name, error in errors.items())
    assert all(row["predictive_regret"] >= 0 for row in document["rows"])


def test_the_same_seed_gives_the_same_table(run):
    def table():
        rows = json.loads(run("compare", *SMALL, "--rounds", 400, "--json").out)["rows"]
        return [{key: value for key, value in row.items() if key not in {"seconds", "peak_mb"}} for row in rows]

    assert table() == table()


def test_a_log_of_ones_own(run, tmp_path):
    path = tmp_path / "log.parquet"
    write_log(simulate(Environment(4, 10), LinUCB(), 800).log, path)
    ran = run("compare", path)
    assert ran.code == 0, ran.err
    assert "suffix imitation, auto" in ran.out
    assert "\ntracking " in ran.out
    assert "direction error" not in ran.out
    assert "errors cannot be given" in ran.out
    assert "  read as nested Parquet: " in ran.out
    document = json.loads(run("compare", path, "--json").out)
    assert document["assumed"][0].startswith("read as nested Parquet")
    assert all(row["direction_error"] is None for row in document["rows"])
    # The order of blocks says little of a learner that has settled within a few of them.
    assert all(0.5 < row["agreement"] <= 1 for row in document["rows"] if "ranked" not in row["name"])


def test_warnings_are_said_once(run):
    ran = run("compare", *UNIFORM, "--arms", 4, "--seed", 1)
    assert ran.code == 0
    assert "explained as well by picking uniformly at random" in ran.err
    assert "suffix imitation, naive" in ran.err
    assert "(tracking): no weights for the features explain the picks of the first 500 rounds" in ran.err
    document = json.loads(run("compare", *UNIFORM, "--observer", "tracking", "--json").out)
    assert [row["direction_error"] is None for row in document["rows"] if row["name"] == "tracking"] == [True]


def test_table_and_chart(run, tmp_path):
    table, png, svg = tmp_path / "table.csv", tmp_path / "chart.png", tmp_path / "chart.SVG"
    some = ("--observer", "rule", "--observer", "ibcb")
    ran = run("compare", *SMALL, *some, "--out", table, "--chart", png)
    assert ran.code == 0, ran.err
    assert f"written: {table}\nwritten: {png}\n" in ran.out
    rows = read_csv(table)
    names = ["learner (sees rewards)", "suffix imitation, rule N^0.9", "IBCB-style, hinge"]
    assert [row["name"] for row in rows] == [*names, "suffix imitation, oracle in hindsight"]
    assert rows[1]["burn_in"] == 935
    assert all(row["seconds"] > 0 for row in rows[1:3])
    assert png.read_bytes()[:4] == b"\x89PNG"
    again = json.loads(run("compare", *SMALL, *some, "--chart", svg, "--json").out)
    assert again["chart"] == str(svg)
    assert [row["direction_error"] for row in again["rows"]] == [row["direction_error"] for row in rows]
    assert "IBCB-style, hinge" in svg.read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of memory")
def test_memory_is_told_and_explained(run):
    ran = run("compare", *SMALL, "--observer", "auto")
    assert "peak MB" in ran.out.splitlines()[1]
    assert "peak MB: memory that the fit took at its most" in ran.out


def test_interrupted_nothing_is_left(run, tmp_path, monkeypatch):
    def stop(*_args, **_kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("onlooker.evaluation.comparison.judge", stop)
    ran = run("compare", *SMALL, "--observer", "rule", "--out", tmp_path / "table.csv")
    assert ran.code == 130
    assert list(tmp_path.iterdir()) == []


def test_all_runs_the_slow_ones_too(run, monkeypatch):
    seen = []

    def noted(_log, observers, **_options):
        seen.extend(observers)
        raise KeyboardInterrupt

    monkeypatch.setattr("onlooker.evaluation.study.compare", noted)
    assert run("compare", *SMALL, "--all").code == 130
    assert seen == [method.title for method in METHODS]


def test_bad_targets_and_names(refused, tmp_path):
    assert "there is no method 'magic'" in refused("compare", "--observer", "magic")
    assert "--all runs every observer" in refused("compare", "--observer", "rule", "--all")
    assert "--chart c.pdf: is written as .png or .svg" in refused("compare", "--chart", "c.pdf")
    assert "name a file in a folder that exists" in refused("compare", "--out", tmp_path / "no" / "table.csv")
    assert "name a file in a folder that exists" in refused("compare", "--out", tmp_path)


def test_bad_input(refused, tmp_path):
    assert "--learner describes a simulation" in refused("compare", tmp_path / "log.csv", "--learner", "lints")
    assert "no-such.csv" in refused("compare", tmp_path / "no-such.csv")


def test_a_log_that_is_too_short_for_one_of_them(refused, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("round,chosen,x\n1,1,2\n1,0,3\n2,1,4\n2,0,6\n3,0,1\n3,1,9\n")
    assert "last of 5 blocks: 3 rounds cannot make 5 blocks" in refused("compare", path, "--observer", "blocks")
