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
    assert found.verdict == "settled"
    assert ran.out.splitlines()[0] == found.sentence
    assert repr(found) in ran.out
    assert repr(log) in ran.out
    assert "read as " in ran.out


def test_json(run, path):
    document = json.loads(run("diagnose", path, "--bins", "5", "--level", "0.9", "--json").out)
    found = diagnose(read_log(path), 5, level=0.9)
    assert document["verdict"] == "settled"
    assert document["settled"]["round"] == found.settled.round
    assert len(document["bins"]) == 5
    assert document["level"] == 0.9


def test_each_learner_apart(run, shops):
    columns = ("--round", "visit", "--chosen", "bought", "--by", "shop")
    ran = run("diagnose", shops, *columns)
    assert ran.code == 0, ran.err
    assert ran.out.startswith("shop north: Settled from the start")
    assert "\nshop south: No preference found" in ran.out
    found = json.loads(run("diagnose", shops, *columns, "--json").out)
    assert {name: one["verdict"] for name, one in found["diagnoses"].items()} == {
        "north": "settled",
        "south": "no preference found",
    }
    assert found["by"] == "shop"


def test_bad_input(refused, path, shops, tmp_path):
    assert "no-such.parquet" in refused("diagnose", tmp_path / "no-such.parquet")
    assert "'--bins': 1 is not in the range" in refused("diagnose", path, "--bins", "1")
    assert "level" in refused("diagnose", path, "--level", "95")
    assert "town" in refused("diagnose", shops, "--round", "visit", "--chosen", "bought", "--by", "town")
