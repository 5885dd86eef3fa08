"""Scores that are not linear on the command line."""

import json

import numpy as np
import pytest

from onlooker import AdditivePolicy, BanditLog, load_policy, write_log


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(1200, 4, 2))
    scores = 2 * np.sin(2 * X[..., 0]) + X[..., 1]
    log = BanditLog.from_dense(
        X, (scores + rng.gumbel(size=scores.shape)).argmax(axis=1), feature_names=["angle", "speed"]
    )
    place = tmp_path_factory.mktemp("scores") / "log.parquet"
    write_log(log, place)
    return place


def test_fit_saves_curves_and_says_what_it_took(run, path, tmp_path):
    ran = run("fit", path, "--score", "auto", "--burn-in", "naive", "--out", tmp_path / "policy.json")
    assert ran.code == 0, ran.err
    assert "taken" in ran.out
    assert "mean slope" in ran.out
    assert isinstance(load_policy(tmp_path / "policy.json"), AdditivePolicy)
    ran = run("fit", path, "--score", "additive", "--burn-in", "naive", "--json")
    assert json.loads(ran.out)["score"] == "additive"


def test_a_report_has_curves_beside_the_linear_loss(run, path, tmp_path):
    ran = run("report", path, "--score", "additive", "--out", tmp_path / "report.html", "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)["score"]
    assert found["held_out_loss"]["additive"] < found["held_out_loss"]["linear"]
    assert list(found["typical_effect"]) == ["angle", "speed"]
    page = (tmp_path / "report.html").read_text()
    assert "Whether the score is linear" in page
    assert "--score additive" in page


def test_what_cannot_be_followed_is_said(run, path, tmp_path):
    out = tmp_path / "with.csv"
    ran = run("propensities", path, "--score", "neural", "--observer", "tracking", "--out", out)
    assert ran.code == 2
    assert "linear in a basis" in ran.err
    assert not out.exists()
