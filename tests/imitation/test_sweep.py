"""The burn-in curve equals separate fits."""

import numpy as np
import pytest

from onlooker.base.errors import InputError
from onlooker.imitation.burn_in import fit_suffixes
from onlooker.imitation.sweep import burn_in_sweep
from onlooker.logs.log import BanditLog
from onlooker.observers.suffix_imitation import SuffixImitation


@pytest.fixture(scope="module")
def log():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 5, 3))
    return BanditLog.from_dense(X, (X @ [1.0, 2.0, -1.0] + rng.gumbel(size=(1200, 5))).argmax(axis=1))


def test_equals_separate_fits(log):
    alphas = [0.9, 0.0, 0.5, 0.5, 0.8]
    sweep = burn_in_sweep(log, alphas, l2=1e-3)
    assert sweep.burn_ins.tolist() == [590, 1, 34, 34, 290]
    for theta, loss, burn_in in zip(sweep.thetas, sweep.losses, sweep.burn_ins, strict=True):
        observer = SuffixImitation(burn_in=int(burn_in), l2=1e-3).fit(log)
        np.testing.assert_allclose(theta, observer.theta_, rtol=1e-4)
        assert loss == pytest.approx(observer.loss_)
    assert sweep.policy(1).theta.tolist() == sweep.thetas[1].tolist()


def test_nothing_left_is_nan(log):
    sweep = burn_in_sweep(log, np.linspace(0, 1, 5))
    assert np.isnan(sweep.thetas[-1]).all()
    assert np.isfinite(sweep.thetas[:-1]).all()


def test_progress_counts_every_fit(log):
    seen = []
    burn_in_sweep(log, [0.0, 0.5, 0.9], progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_bad_alphas_are_refused(log):
    for alphas in ([], [1.5], [[0.5]], [np.nan]):
        with pytest.raises(InputError, match="alphas"):
            burn_in_sweep(log, alphas)


def test_rounds_without_weight_count_as_none():
    """The fits are those of a log that lacks the rounds."""
    random = np.random.default_rng(5)
    X = random.normal(size=(400, 4, 3))
    chosen = (X @ [1.0, -0.5, 0.2] + random.gumbel(size=(400, 4))).argmax(axis=1)
    kept = random.random(400) < 0.8
    kept[100:120] = False
    log, rest = BanditLog.from_dense(X, chosen), BanditLog.from_dense(X[kept], chosen[kept])
    burn_ins = [0, 100, 120, 200]
    weighted, losses = fit_suffixes(log, burn_ins, l2=1e-3, weights=kept.astype(float))
    expected, expected_losses = fit_suffixes(rest, [int(kept[:b].sum()) for b in burn_ins], l2=1e-3)
    np.testing.assert_allclose(weighted, expected, atol=1e-3)
    np.testing.assert_allclose(losses, expected_losses, atol=1e-6)


def test_a_sweep_without_penalty_finds_what_single_fits_find_where_features_are_rare():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(20_000, 5, 6))
    X[:, :, 3:] = rng.random((20_000, 5, 3)) < 0.01
    chosen = (X @ [1.0, -1.0, 0.5, -1.5, 1.0, 2.0] + rng.gumbel(size=(20_000, 5))).argmax(axis=1)
    log = BanditLog.from_dense(X, chosen)
    sweep = burn_in_sweep(log, [0.0, 0.9, 0.97, 0.99], l2=0.0)
    single = [SuffixImitation(burn_in=int(start), l2=0.0).fit(log).loss_ for start in sweep.burn_ins]
    np.testing.assert_allclose(sweep.losses, single, rtol=1e-5)
