"""`onlooker diagnose`."""

import json

import numpy as np
import pytest

from onlooker import Environment, ExploreThenCommit, diagnose, read_log, simulate, write_log


@pytest.fixture(scope="module")
def log():
    return simulate(Environment(3, (2, 6), seed=1), ExploreThenCommit(300), 1500, seed=1).log


@pytest.fixture(scope="module")
def path(log, tmp_path_factory):
    path = tmp_path_factory.mktemp("diagnose") / "log.parquet"
    write_log(log, path)
    return path


@pytest.fixture(scope="module")
def shops(tmp_path_factory):
    """Two learners in one file, their rounds in turn: one buys what is cheap, the other whatever comes."""
    rng = np.random.default_rng(0)
    rows = ["shop,visit,bought,price,weight"]
    for visit in range(400):
        for shop in ("north", "south"):
            price, weight = rng.normal(size=(2, 4))
            pick = price.argmin() if shop == "north" else rng.integers(4)
            rows += [f"{shop},{visit}{shop[0]},{int(a == pick)},{price[a]:.4f},{weight[a]:.4f}" for a in range(4)]
    path = tmp_path_factory.mktemp("shops") / "shops.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_says_the_verdict_first(run, path, log):
    ran = run("diagnose", path)
    assert ran.code == 0, ran.err
    found = diagnose(read_log(path))
    assert found.verdict == "stable"
    assert ran.out.splitlines()[0] == found.sentence
    assert repr(found) in ran.out
    assert repr(log) in ran.out
    assert "read as " in ran.out


def test_json(run, path):
    document = json.loads(run("diagnose", path, "--bins", "5", "--level", "0.9", "--json").out)
    found = diagnose(read_log(path), 5, level=0.9)
    assert document["verdict"] == "stable"
    assert document["settled"]["round"] == found.settled.round
    assert len(document["bins"]) == 5
    assert document["level"] == 0.9


def test_each_learner_apart(run, shops):
    columns = ("--round", "visit", "--chosen", "bought", "--by", "shop")
    ran = run("diagnose", shops, *columns)
    assert ran.code == 0, ran.err
    assert "2 groups by shop: 1 stable, 1 no preference\n" in ran.out
    assert "\nshop north: What it values is stable from the start" in ran.out
    assert "\nshop south: No preference found" in ran.out
    found = json.loads(run("diagnose", shops, *columns, "--json").out)
    assert {name: one["verdict"] for name, one in found["diagnoses"].items()} == {
        "north": "stable",
        "south": "no preference",
    }
    assert found["by"] == "shop"


def test_bad_input(refused, path, shops, tmp_path):
    assert "no-such.parquet" in refused("diagnose", tmp_path / "no-such.parquet")
    assert "'--bins': 1 is not in the range" in refused("diagnose", path, "--bins", "1")
    assert "level" in refused("diagnose", path, "--level", "95")
    assert "town" in refused("diagnose", shops, "--round", "visit", "--chosen", "bought", "--by", "town")


def test_alerts(run, refused, path):
    found = diagnose(read_log(path))
    quiet = run("diagnose", path, "--alert", "changed", "--alert", "exploration>99%")
    assert quiet.code == 0
    assert "alert" not in quiet.err
    limit = f"exploration > {found.exploration.share / 2}"
    loud = run("diagnose", path, "--alert", "stable", "--alert", limit, "--json")
    assert loud.code == 3
    assert loud.err.splitlines() == ["alert: stable", f"alert: {limit}"]
    assert json.loads(loud.out)["alerts"] == ["stable", limit]
    for wrong in ("drifting", "exploration>", "exploration=0.2", "exploration>1.2.3"):
        assert f"--alert {wrong}" in refused("diagnose", path, "--alert", wrong)


def test_both_answers_are_in_json(run, path):
    document = json.loads(run("diagnose", path, "--json").out)
    assert document["verdict"] == document["values"]["state"] == "stable"
    assert set(document["values"]) == {"state", "since", "changed_at"}
    assert set(document["exploration"]) == {"share", "low", "high", "trend"}
