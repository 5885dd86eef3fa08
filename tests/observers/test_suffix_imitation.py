"""Suffix imitation as the paper runs it, and the figures it reports about itself."""

import json
import subprocess
import sys

import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.cli.fit import fit
from onlooker.evaluation.metrics import direction_error
from onlooker.imitation.burn_in import HeldOut
from onlooker.imitation.choice_model import as_score
from onlooker.logs.log import BanditLog
from onlooker.observers import SuffixImitation
from onlooker.simulation.environment import Environment
from onlooker.simulation.learners import LinTS, LinUCB
from onlooker.simulation.play import simulate


@pytest.mark.parametrize(
    ("learner", "levels"),
    [
        pytest.param(LinUCB(), (0.052, 0.076, 0.060), id="LinUCB", marks=pytest.mark.slow),
        pytest.param(LinTS(), (0.048, 0.075, 0.069), id="LinTS", marks=pytest.mark.slow),
    ],
)
def test_levels_at_the_papers_default_setting(learner, levels):
    """d = 50, K = 200, N = 10,000: learner, naive and rule, within 20% of the levels that are known, in their order."""
    errors = []
    for seed in range(2):
        played = simulate(Environment(50, 200, seed=seed), learner, n_rounds=10_000, seed=seed)
        thetas = [
            played.learner_theta,
            SuffixImitation(burn_in="naive").fit(played.log).theta_,
            SuffixImitation(burn_in="rule").fit(played.log).theta_,
        ]
        errors.append([direction_error(theta, played.theta_star) for theta in thetas])
    itself, naive, rule = np.mean(errors, axis=0)
    np.testing.assert_allclose([itself, naive, rule], levels, rtol=0.2)
    assert itself < rule < naive


@pytest.mark.slow
def test_one_fit_holds_no_second_copy_of_the_features():
    """Peak memory, beyond what the interpreter and its libraries take, stays under 1.3 times the log."""
    script = """
import json, re
from onlooker.simulation.environment import Environment
from onlooker.simulation.learners import LinUCB
from onlooker.observers import SuffixImitation
from onlooker.simulation.play import simulate
SuffixImitation(burn_in="naive").fit(simulate(Environment(2, 3), LinUCB(), n_rounds=50).log)
peak = lambda: 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
before = peak()
log = simulate(Environment(50, 200), LinUCB(), n_rounds=10_000).log
SuffixImitation(burn_in="naive").fit(log)
print(json.dumps((peak() - before) / log.features.nbytes))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert 0.9 < json.loads(done.stdout) < 1.3


def softmax_log(n_rounds=600):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rounds, 5, 2))
    chosen = (X @ [1.0, -0.5] + rng.gumbel(size=(n_rounds, 5))).argmax(axis=1)
    return BanditLog.from_dense(X, chosen, feature_names=["price", "speed"])


def test_burn_in_is_the_same_as_cutting_the_log():
    log = softmax_log()
    whole, cut = SuffixImitation(burn_in=100).fit(log), SuffixImitation(burn_in="naive").fit(log[100:])
    np.testing.assert_array_equal(whole.theta_, cut.theta_)
    np.testing.assert_array_equal(whole.covariance_, cut.covariance_)
    assert (whole.burn_in_, cut.burn_in_) == (100, 0)
    assert whole.n_rounds_ == cut.n_rounds_ == 500


def test_sample_weights_cover_the_whole_log():
    log = softmax_log()
    weights = np.ones(600)
    weights[:100] = 1e6
    np.testing.assert_allclose(
        SuffixImitation(burn_in=100).fit(log, sample_weight=weights).theta_,
        SuffixImitation(burn_in=100).fit(log).theta_,
    )
    weights = np.where(np.arange(600) < 300, 0.0, 1.0)
    weighted = SuffixImitation(burn_in="naive").fit(log, sample_weight=weights)
    np.testing.assert_allclose(weighted.theta_, SuffixImitation(burn_in=300).fit(log).theta_, rtol=1e-8)
    with pytest.raises(InputError, match="600 rounds"):
        SuffixImitation(burn_in=100).fit(log, sample_weight=weights[100:])


def test_summary_in_figures_and_words():
    observer = SuffixImitation(burn_in=100).fit(softmax_log())
    summary = observer.summary(level=0.9)
    price = summary.coefficients[0]
    assert price.name == "price"
    assert price.estimate == observer.theta_[0]
    assert price.standard_error == pytest.approx(np.sqrt(observer.covariance_[0, 0]))
    assert price.high - price.low == pytest.approx(2 * 1.6448536 * price.standard_error)
    assert price.z == pytest.approx(price.estimate / price.standard_error)
    assert summary.log_likelihood == pytest.approx(-500 * observer.loss_)
    assert summary.null_log_likelihood == pytest.approx(-500 * np.log(5))
    assert summary.agreement == observer.score(softmax_log()[100:])
    text = str(summary)
    assert "500 rounds imitated after a burn-in of 100" in text
    assert "90% interval (sandwich)" in text
    assert "price" in text
    assert json.loads(json.dumps(summary.to_dict()))["coefficients"][1]["name"] == "speed"


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "hinge"}, "loss is 'hinge'"),
        ({"covariance": "robust"}, "covariance is 'robust'"),
        ({"l2": -1.0}, "l2 is -1.0"),
        ({"l2": float("nan")}, "l2 is nan"),
        ({"lags": -1}, "lags is -1"),
    ],
)
def test_bad_parameters_are_refused_at_fit(parameters, message):
    with pytest.raises(InputError, match=message):
        SuffixImitation(**parameters).fit(softmax_log())


def test_bad_level_is_refused():
    observer = SuffixImitation().fit(softmax_log())
    with pytest.raises(InputError, match="level is 95"):
        observer.summary(level=95)


def test_the_class_and_the_command_line_have_the_same_defaults():
    options = {parameter.name: parameter.default for parameter in fit.params}
    for name, value in SuffixImitation().get_params().items():
        given = options.get(name, value)
        assert (as_score(given) if name == "score" else given) == value
    assert SuffixImitation().burn_in == options["burn_in"] == "auto"
    assert SuffixImitation().l2 == HeldOut().l2 == options["l2"]
