"""`onlooker propensities`."""

import json

import numpy as np
import pytest

from onlooker import Environment, EpsilonGreedy, propensities, read_log, simulate, write_log


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("propensities") / "log.parquet"
    write_log(simulate(Environment(3, 5, seed=1), EpsilonGreedy(0.3), 600, seed=1).log, path)
    return path


def test_writes_the_log_with_a_column(run, path, tmp_path):
    ran = run("propensities", path, "--out", tmp_path / "out.csv", "--chart", tmp_path / "chart.png")
    assert ran.code == 0, ran.err
    assert "information share one step ahead" in ran.out
    assert "overlap: for a policy that picks at random" in ran.out
    table = np.genfromtxt(tmp_path / "out.csv", delimiter=",", names=True)
    np.testing.assert_array_equal(table["propensity"], propensities(read_log(path)).values)
    assert (tmp_path / "chart.png").stat().st_size > 1000


def test_json_and_formats(run, path, tmp_path):
    ran = run("propensities", path, "--out", tmp_path / "out.dat", "--format", "obp", "--observer", "dynamic", "--json")
    document = json.loads(ran.out)
    assert document["observer"] == "DynamicImitation"
    assert document["format"] == "obp"
    assert document["overlap"]["effective_sample_size"] > 100
    assert "pscore" in np.load(tmp_path / "out.dat")


def test_columns_have_names(run, tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{t},{int(a == 0)},{rng.normal():.3f}" for t in range(80) for a in range(3)]
    (tmp_path / "trips.csv").write_text("trip,taken,price\n" + "\n".join(lines) + "\n")
    ran = run(
        "propensities", tmp_path / "trips.csv", "--round", "trip", "--chosen", "taken", "--out", tmp_path / "o.vw"
    )
    assert ran.code == 0, ran.err
    assert "costs are not known" in ran.out
    assert read_log(tmp_path / "o.vw").n_rounds == 80


def test_what_is_refused(refused, path, tmp_path):
    assert "pass --format" in refused("propensities", path, "--out", tmp_path / "out")
    assert "is the log itself" in refused("propensities", path, "--out", path)
    assert "Missing option '--out'" in refused("propensities", path)


def test_a_log_without_a_choice_is_refused(run, tmp_path):
    rows = "".join(f"{number},1,{number}\n" for number in range(5))
    (tmp_path / "log.csv").write_text(f"round,chosen,price\n{rows}")
    ran = run("propensities", tmp_path / "log.csv", "--out", tmp_path / "out.csv")
    assert ran.code == 2
    assert "no round offers a choice" in ran.err
    assert not (tmp_path / "out.csv").exists()
