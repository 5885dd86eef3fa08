"""Short logs are fitted by one compiled search, to the same weights as any other."""

import numpy as np
import pytest

from onlooker import BanditLog
from onlooker.imitation.burn_in import fit_suffixes
from onlooker.imitation.newton import minimise
from onlooker.imitation.short import is_short, short_fit
from onlooker.imitation.softmax import SoftmaxObjective


def made(seed, n=200, k=5, d=4, scale=1.0, sharp=1.0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (scale * rng.normal(size=(n, k, d))).astype(dtype)
    picks = (sharp * X @ rng.normal(size=d) / scale + rng.gumbel(size=(n, k))).argmax(axis=1)
    return BanditLog.from_dense(X, picks)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("l2", [1e-4, 1e-2, 1.0])
def test_is_the_minimum(seed, l2):
    log = made(seed)
    found = short_fit(log, l2=l2, tolerance=1e-9)
    assert np.allclose(found, minimise(SoftmaxObjective(log, l2=l2)).theta, atol=1e-6)


@pytest.mark.parametrize(
    "log",
    [
        made(1, scale=1e4),
        made(2, scale=1e-3),
        made(3, sharp=1e6),
        made(4, dtype=np.float32),
        made(5, n=3),
        made(6, d=1, k=2),
        BanditLog.from_dense(np.ones((20, 3, 2)), np.zeros(20, dtype=int)),
    ],
    ids=["large", "tiny", "separable", "float32", "few", "small", "constant"],
)
def test_awkward_logs(log):
    found = short_fit(log, l2=1e-4, tolerance=1e-8)
    expected = SoftmaxObjective(log, l2=1e-4)
    assert found is not None
    at = expected.evaluate(found)
    best = minimise(expected)
    value = best.loss + 0.5e-4 * float(best.theta @ best.theta)
    assert at.value <= value + 1e-9


def test_weights_count_as_rounds_and_those_without_are_left_out():
    log = made(7)
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, size=log.n_rounds).astype(float)
    rounds = np.repeat(np.arange(log.n_rounds), weights.astype(int))
    found = short_fit(log, l2=1e-4, tolerance=1e-9, weights=weights)
    assert np.allclose(found, short_fit(log[rounds], l2=1e-4, tolerance=1e-9), atol=1e-6)
    assert short_fit(log, l2=1e-4, tolerance=1e-9, weights=np.zeros(log.n_rounds)) is None


def test_rounds_of_one_arm_say_nothing():
    X = np.random.default_rng(0).normal(size=(9, 2))
    log = BanditLog(X, [0, 2, 4, 6, 8, 9], [0, 1, 0, 1, 0])
    assert np.allclose(short_fit(log, l2=1e-2, tolerance=1e-9), short_fit(log[:4], l2=1e-2, tolerance=1e-9), atol=1e-8)


def test_suffixes_are_those_of_fits_of_their_own(monkeypatch):
    log, burn_ins = made(8), [0, 10, 50, 120]
    thetas, losses = fit_suffixes(log, burn_ins, l2=1e-4)
    for theta, loss, burn_in in zip(thetas, losses, burn_ins, strict=True):
        fit = minimise(SoftmaxObjective(log.suffix(burn_in), l2=1e-4))
        assert np.allclose(theta, fit.theta, atol=1e-3)
        assert loss == pytest.approx(fit.loss, abs=1e-6)
    monkeypatch.setattr("onlooker.imitation.burn_in.is_short", lambda *_: False)
    longer, lost = fit_suffixes(log, burn_ins, l2=1e-4)
    assert np.allclose(thetas, longer, atol=2e-3)
    assert np.allclose(losses, lost, atol=1e-6)


def test_only_short_dense_logs_with_regularisation():
    assert is_short(made(0), 1e-4)
    assert not is_short(made(0), 0.0)
    assert not is_short(made(0, n=20_000), 1e-4)
    assert not is_short(made(0, d=40), 1e-4)
    assert not is_short(BanditLog.from_contexts(np.eye(3), [0, 1, 2]), 1e-4)
