"""The parts of the benchmark that need no other library."""

from dataclasses import replace

import numpy as np
import pytest
from outside import logs
from outside.logs import Played, played
from outside_learners import CHECKS, SHARES, measure, table

from onlooker import BanditLog


@pytest.fixture
def small(monkeypatch, tmp_path):
    monkeypatch.setattr(logs, "ROUNDS", 60)
    return tmp_path


@pytest.mark.parametrize("name", ["LinTS", "LinUCB", "ridge, epsilon 0.1", "neural network, epsilon 0.1"])
def test_simulated_learners_know_what_they_did(small, name):
    one = played(name, 3, small)
    assert one.log.n_rounds == 60
    assert ((one.propensities > 0) & (one.propensities <= 1)).all()
    again = played(name, 3, small)
    np.testing.assert_array_equal(again.log.chosen, one.log.chosen)


def test_shares_run_from_guessing_to_the_learner():
    log = BanditLog.from_dense(np.random.default_rng(0).standard_normal((50, 4, 2)), np.zeros(50, dtype=int))
    one = Played(log, np.full(50, 0.9), judged=10)
    assert one.share(np.full(50, 0.25)) == pytest.approx(0.0)
    assert one.share(one.propensities) == pytest.approx(1.0)


@pytest.mark.filterwarnings("ignore::onlooker.base.errors.OnlookerWarning")
def test_one_log_is_measured(small):
    one = played("ridge, epsilon 0.1", 3, small)
    found = measure(replace(one, judged=20), 3)
    assert set(found) <= {*SHARES, *CHECKS}
    assert 0 <= found["covered, pick"] <= 1
    assert 0 <= found["agreement, dynamic"] <= 1
    assert np.isfinite(found["SNIPS"])


def test_the_table_is_markdown():
    head, rule, row = table({"a": [dict.fromkeys(SHARES, 0.5)]}, SHARES).splitlines()
    assert head.count("|") == rule.count("|") == row.count("|") == len(SHARES) + 2
    assert "SNIPS" in table({"a": [{"SNIPS": 0.01}, {"SNIPS": -0.02}]}, CHECKS)
