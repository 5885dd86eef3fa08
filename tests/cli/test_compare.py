"""`onlooker compare`."""

import json

from onlooker import Environment, LinUCB, simulate, write_log

SMALL = ("--rounds", 2000, "--features", 4, "--arms", 10, "--seed", 2)


def test_simulated(run):
    document = json.loads(run("compare", *SMALL, "--json").out)
    errors = {row["name"]: row["direction_error"] for row in document["rows"]}
    assert next(iter(errors)) == "learner (sees rewards)"
    oracle = errors["suffix imitation, oracle in hindsight"]
    assert oracle <= min(error for name, error in errors.items() if name.startswith("suffix")) + 1e-3
    assert all(0 < error < 0.5 for error in errors.values())
    assert all(row["predictive_regret"] >= 0 for row in document["rows"])


def test_the_same_seed_gives_the_same_table(run):
    def table():
        rows = json.loads(run("compare", *SMALL, "--json").out)["rows"]
        return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]

    assert table() == table()


def test_a_log_of_ones_own(run, tmp_path):
    path = tmp_path / "log.parquet"
    write_log(simulate(Environment(4, 10), LinUCB(), 1500).log, path)
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
    assert all(0.5 < row["agreement"] <= 1 for row in document["rows"])


def test_warnings_are_said_once(run):
    ran = run("compare", "--learner", "uniform", "--rounds", 500, "--features", 3, "--arms", 4, "--seed", 1)
    assert ran.code == 0
    assert "uniformly at random explains the picks as well" in ran.err
    assert "suffix imitation, naive" in ran.err
    assert "(tracking): the first 500 picks look uniform" in ran.err
    document = json.loads(run("compare", "--learner", "uniform", "--rounds", 500, "--features", 3, "--json").out)
    assert [row["direction_error"] is None for row in document["rows"] if row["name"] == "tracking"] == [True]


def test_bad_input(refused, tmp_path):
    assert "--learner describes a simulation" in refused("compare", tmp_path / "log.csv", "--learner", "lints")
    assert "no-such.csv" in refused("compare", tmp_path / "no-such.csv")
