"""`onlooker simulate`."""

import json

import numpy as np
import pytest

from onlooker import Environment, LinTS, read_log
from onlooker import simulate as play
from onlooker.cli.options import LEARNERS


def test_writes_the_log_that_the_library_makes(run, tmp_path):
    path, truth = tmp_path / "log.parquet", tmp_path / "truth.json"
    ran = run(
        *("simulate", "--learner", "lints", "--features", 4, "--arms", 6, "--rounds", 300, "--seed", 5),
        *("--out", path, "--truth", truth),
    )
    assert ran.code == 0, ran.err
    assert "300 rounds of LinTS" in ran.out
    expected = play(Environment(4, 6, seed=5), LinTS(), 300, seed=5)
    log = read_log(path)
    np.testing.assert_array_equal(log.features, expected.log.features)
    np.testing.assert_array_equal(log.chosen, expected.log.chosen)
    hidden = json.loads(truth.read_text())
    assert hidden["theta_star"] == expected.theta_star.tolist()
    assert hidden["learner_theta"] == expected.learner_theta.tolist()


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_plays(run, tmp_path, learner):
    ran = run(
        "simulate", "--learner", learner, "--rounds", 60, "--arms", 3, "--features", 2, "--out", tmp_path / "l.csv"
    )
    assert ran.code == 0, ran.err
    assert read_log(tmp_path / "l.csv").n_rounds == 60


def test_settings_and_json(run, tmp_path):
    ran = run(
        *("simulate", "--set", "alpha=0.5", "--set", "batch=10", "--rounds", 50, "--arms", 3, "--features", 2),
        *("--out", tmp_path / "log.parquet", "--json"),
    )
    document = json.loads(ran.out)
    assert document["learner"] == "LinUCB(alpha=0.5, ridge=1.0, batch=10)"
    assert document["n_rounds"] == 50


def test_bad_input(refused, tmp_path):
    out = tmp_path / "log.parquet"
    assert "linucb takes ridge=VALUE, batch=VALUE, alpha=VALUE" in refused("simulate", "--set", "beta=1", "--out", out)
    assert "'many' is not a number" in refused("simulate", "--set", "alpha=many", "--out", out)
    assert "--learner" in refused("simulate", "--learner", "magic", "--out", out)
    assert "--out" in refused("simulate")
    assert "noise" in refused("simulate", "--noise", "-1", "--out", out)
    assert "log.xyz" in refused("simulate", "--rounds", 20, "--out", tmp_path / "log.xyz")
    assert "nowhere" in refused("simulate", "--rounds", 20, "--out", tmp_path / "nowhere" / "log.parquet")
    assert list(tmp_path.iterdir()) == []
