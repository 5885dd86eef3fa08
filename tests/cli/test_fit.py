"""`onlooker fit`."""

import json

import numpy as np
import pytest

from onlooker import Environment, EpsilonGreedy, LinearPolicy, SuffixImitation, simulate, write_log


@pytest.fixture(scope="module")
def log():
    return simulate(Environment(4, (2, 8), seed=1), EpsilonGreedy(0.1), 2000, seed=1).log


@pytest.fixture(scope="module")
def path(log, tmp_path_factory):
    path = tmp_path_factory.mktemp("fit") / "log.parquet"
    write_log(log, path)
    return path


@pytest.mark.parametrize(("option", "burn_in"), [("naive", "naive"), ("rule", "rule"), ("300", 300), ("0.5", 0.5)])
def test_saves_the_policy_that_the_library_finds(run, path, log, tmp_path, option, burn_in):
    out = tmp_path / "policy.json"
    ran = run("fit", path, "--burn-in", option, "--out", out)
    assert ran.code == 0, ran.err
    expected = SuffixImitation(burn_in=burn_in).fit(log)
    assert LinearPolicy.load(out) == expected.policy_
    assert f"burn-in of {expected.burn_in_}" in ran.out
    assert "x3" in ran.out
    assert str(out) in ran.out


def test_auto_is_the_default(run, path, log):
    document = json.loads(run("fit", path, "--json").out)
    expected = SuffixImitation(burn_in="auto").fit(log)
    assert document["burn_in"] == expected.burn_in_
    assert [row["estimate"] for row in document["coefficients"]] == expected.theta_.tolist()
    assert document["warnings"] == []


def test_columns_and_warnings(run, tmp_path):
    rng = np.random.default_rng(0)
    rows = ["visit,shop,bought,price,weekday"]
    for visit in range(200):
        prices = rng.uniform(1, 9, 3)
        best = (-prices + rng.gumbel(size=3)).argmax()
        rows += [f"{visit},{shop},{int(shop == best)},{prices[shop]:.3f},{visit % 7}" for shop in range(3)]
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(rows) + "\n")
    ran = run("fit", path, "--round", "visit", "--chosen", "bought", "--arm", "shop", "--burn-in", "naive")
    assert ran.code == 0, ran.err
    assert "price" in ran.out
    assert "warning: 'weekday' never varies within a round" in ran.out
    document = json.loads(
        run("fit", path, "--round", "visit", "--chosen", "bought", "--feature", "price", "--json").out
    )
    (price,) = document["coefficients"]
    assert price["low"] < -1 < price["high"] < 0


def test_what_is_not_a_number_is_null_in_json(run, tmp_path):
    path = tmp_path / "flat.csv"
    path.write_text("round,chosen,x,same\n" + "".join(f"{t},{a},{t * 0.1 + a},1\n" for t in range(40) for a in (0, 1)))
    document = json.loads(run("fit", path, "--burn-in", "naive", "--json").out)
    assert document["coefficients"][1]["standard_error"] is None
    assert document["warnings"]


def test_bad_input(refused, path, tmp_path):
    assert "no-such.parquet" in refused("fit", tmp_path / "no-such.parquet")
    assert "--burn-in" in refused("fit", path, "--burn-in", "most")
    assert "leaves nothing" in refused("fit", path, "--burn-in", "2000")
    assert "'--l2': -1.0 is not in the range" in refused("fit", path, "--l2", "-1")
    assert "level" in refused("fit", path, "--level", "95")
    assert "nowhere" in refused("fit", path, "--out", tmp_path / "nowhere" / "policy.json")
    broken = tmp_path / "broken.parquet"
    broken.write_bytes(b"PAR1 not really")
    assert "broken.parquet" in refused("fit", broken)


def test_shared_features_and_positions_of_other_tools(run, refused, tmp_path, data_folder):
    path = tmp_path / "visits.vw"
    path.write_text(
        "shared |u age:3\n1:0:0.5 |a price:1\n|a price:2\n\nshared |u age:1\n|a price:1\n2:0:0.5 |a price:2\n"
    )
    ran = run("fit", path, "--cross")
    assert ran.code == 0, ran.err
    assert "u^age x a^price" in ran.out
    ran = run("fit", data_folder / "obd" / "random" / "women", "--position", "2", "--burn-in", "naive", "--json")
    assert ran.code == 0, ran.err
    assert 0 < json.loads(ran.out)["n_rounds"] < 10_000
    assert "has no rounds of position 0" in refused("fit", data_folder / "obd" / "random" / "women", "--position", "0")
    assert "VW text has no option --position" in refused("fit", path, "--position", "1")


def test_fewest_missed_picks(run, refused, path, log, tmp_path):
    out = tmp_path / "policy.json"
    options = ("--burn-in", "0.5", "--loss", "zero_one", "--seed", "3")
    ran = run("fit", path, *options, "--out", out)
    assert ran.code == 0, ran.err
    expected = SuffixImitation(burn_in=0.5, loss="zero_one", seed=3).fit(log)
    assert LinearPolicy.load(out) == expected.policy_
    assert "no intervals" in ran.out
    document = json.loads(run("fit", path, *options, "--json").out)
    assert document["agreement"] == expected.agreement_
    assert document["covariance"] == "none"
    assert document["coefficients"][0]["low"] is None
    assert "hinge" in refused("fit", path, "--loss", "hinge")
