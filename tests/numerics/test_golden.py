"""Answers do not move: those of `scripts/make_golden.py`, most of them from an independent reference."""

import json
import warnings

import make_golden
import numpy as np
import pytest

from onlooker import OnlookerWarning, SuffixImitation, burn_in_sweep
from onlooker.imitation.burn_in import SWEEP_TOLERANCE


def answers(name):
    return json.loads((make_golden.FOLDER / f"{name}.json").read_text(encoding="utf-8"))["answers"]


def fitted(row, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OnlookerWarning)
        return SuffixImitation(l2=row["l2"], **parameters).fit(LOGS[row["log"]])


def described(row):
    return ", ".join(str(row[key]) for key in ("log", "l2", "burn_in", "covariance") if key in row)


LOGS = make_golden.logs()


# A diagnosis rests on many fits that stop at a sweep's tolerance; only so far are its figures its own.
RELATIVE = {"diagnose": 1e-3}


def assert_same(found, kept, path, relative):
    """Same keys, words and whole numbers; other numbers to what a search may have carried along."""
    if isinstance(kept, dict):
        assert found.keys() == kept.keys(), path
        for key in kept:
            assert_same(found[key], kept[key], f"{path}.{key}", relative)
    elif isinstance(kept, list):
        assert len(found) == len(kept), path
        for k, pair in enumerate(zip(found, kept, strict=True)):
            assert_same(*pair, f"{path}[{k}]", relative)
    elif isinstance(kept, float):
        assert found == pytest.approx(kept, rel=relative, abs=1e-9), path
    else:
        assert found == kept, path


@pytest.mark.parametrize("name", make_golden.MAKERS)
def test_the_generator_makes_what_is_kept(name):
    """For tracking and diagnosis this is the whole test; for the others it guards the reference itself."""
    kept = json.loads((make_golden.FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert_same(make_golden.document(name), kept, name, RELATIVE.get(name, 1e-6))


@pytest.mark.parametrize("row", answers("fit"), ids=described)
def test_fit(row):
    observer = fitted(row, burn_in=row["burn_in"])
    np.testing.assert_allclose(observer.theta_, row["theta"], rtol=1e-6, atol=1e-7)
    assert observer.loss_ == pytest.approx(row["loss"], rel=1e-8)


def test_the_rule_is_the_one_of_the_reference():
    for log in LOGS.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OnlookerWarning)
            assert SuffixImitation(burn_in="rule").fit(log).burn_in_ == make_golden.rule(log.n_rounds)


@pytest.mark.parametrize("row", answers("intervals"), ids=described)
def test_intervals(row, monkeypatch):
    # All rounds are solved for; with a leverage below 5% the first term of a series would do.
    monkeypatch.setattr("onlooker.imitation.leverage.CLOSELY", 0.0)
    observer = fitted(row, burn_in="naive", covariance=row["covariance"])
    # Arms with next to no probability are left out of the curvature: a millionth of a round at most.
    np.testing.assert_allclose(np.sqrt(np.diag(observer.covariance_)), row["standard_errors"], rtol=5e-6)
    for line, error in zip(observer.summary(0.95).coefficients, row["standard_errors"], strict=True):
        assert line.high - line.low == pytest.approx(2 * 1.959963984540054 * error, rel=5e-6)


@pytest.mark.parametrize("name", ["softmax", "linucb"])
def test_sweep(name):
    rows = [row for row in answers("sweep") if row["log"] == name]
    found = burn_in_sweep(LOGS[name], [row["alpha"] for row in rows], l2=1e-4)
    for theta, loss, row in zip(found.thetas, found.losses, rows, strict=True):
        away = theta - np.array(row["theta"])
        assert (away @ np.array(row["hessian"]) @ away) ** 0.5 <= SWEEP_TOLERANCE
        assert loss == pytest.approx(row["loss"], abs=1e-6)
